// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
	"trueup.dev/observe/recorder"
	"trueup.dev/reconcilers"
)

// BenchmarkSequence measures 20 steps that do nothing.
func BenchmarkSequence(b *testing.B) {
	steps := make(sequence, 20)
	for i := range steps {
		steps[i] = &syncReconciler{Sync: func(context.Context, *fixture.Resource) error { return nil }}
	}
	w := newWorld(b)
	resource := newResource()
	for name, ctx := range map[string]context.Context{
		"Plain":     context.Background(),
		"BelowRoot": w.Context(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if result, err := steps.Reconcile(ctx, resource); err != nil || result != (reconcilers.Result{}) {
					b.Fatalf("result %v, error %v", result, err)
				}
			}
		})
	}
}

func TestSequence_Allocations(t *testing.T) {
	steps := sequence{
		&syncReconciler{Sync: func(context.Context, *fixture.Resource) error { return nil }},
		&syncReconciler{Sync: func(context.Context, *fixture.Resource) error { return nil }},
	}
	ctx, resource := context.Background(), newResource()
	allocations := testing.AllocsPerRun(100, func() { _, _ = steps.Reconcile(ctx, resource) })
	equal(t, "allocations of a no-op sequence", 0, allocations)
}

// unchangingClient returns a resource and its ConfigMap, without the cost of a server.
type unchangingClient struct {
	client.Client
	resource  *fixture.Resource
	configMap *corev1.ConfigMap
}

func (c unchangingClient) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch obj := obj.(type) {
	case *fixture.Resource:
		c.resource.DeepCopyInto(obj)
	case *corev1.ConfigMap:
		c.configMap.DeepCopyInto(obj)
	}
	return nil
}

// cachedClient returns resources and ConfigMaps by name, as a cache does.
type cachedClient struct {
	client.Client
	resources  map[string]*fixture.Resource
	configMaps map[string]*corev1.ConfigMap
}

func newCachedClient(c client.Client, requests []reconcilers.Request) client.Client {
	cached := cachedClient{c, map[string]*fixture.Resource{}, map[string]*corev1.ConfigMap{}}
	for _, req := range requests {
		cached.resources[req.Name] = newResource(settled, func(r *fixture.Resource) { r.Name = req.Name })
		cached.configMaps[req.Name] = newConfigMap(req.Name, orphan)
	}
	return cached
}

func (c cachedClient) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch obj := obj.(type) {
	case *fixture.Resource:
		c.resources[key.Name].DeepCopyInto(obj)
	case *corev1.ConfigMap:
		c.configMaps[key.Name].DeepCopyInto(obj)
	}
	return nil
}

// BenchmarkNoOpRequest measures a no-op request of a controller.
func BenchmarkNoOpRequest(b *testing.B) {
	for _, allow := range []bool{true, false} {
		w := newWorld(b)
		w.Config.Client = unchangingClient{
			Client: w.Config.Client, resource: newResource(settled), configMap: newConfigMap("test", orphan),
		}
		config := configFor(w, newManager(b, w, newEventCache(w.Scheme)))
		config.AllowHotLoops = allow
		for root, reconcile := range map[string]func(context.Context, reconcilers.Request) (reconcilers.Result, error){
			"Resource":  (&resourceReconciler{Reconciler: sequence{}, Config: config}).ReconcileManaged,
			"Aggregate": newAggregateIn(config).ReconcileManaged,
		} {
			b.Run(fmt.Sprintf("%s/AllowHotLoops=%t", root, allow), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if result, err := reconcile(b.Context(), testRequest); err != nil || result != (reconcilers.Result{}) {
						b.Fatalf("result %v, error %v", result, err)
					}
				}
			})
		}
	}
}

// BenchmarkObservedRequest measures no-op requests of a controller for 10,000 objects, with five steps and three reads,
// without listeners and with them. Metrics are the default.
func BenchmarkObservedRequest(b *testing.B) {
	read := &syncReconciler{Sync: func(ctx context.Context, resource *fixture.Resource) error {
		return reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, client.ObjectKeyFromObject(resource), &corev1.ConfigMap{})
	}}
	for name, listeners := range map[string][]observe.Listener{
		"None":     nil,
		"Nop":      {observe.Nop},
		"Metrics":  {metrics.Default()},
		"Recorder": {metrics.Default(), recorder.New(recorder.Options{})},
		"Objects":  {metrics.Default(), recorder.New(recorder.Options{Objects: true})},
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			requests := make([]reconcilers.Request, 10_000)
			for i := range requests {
				requests[i] = testRequest
				requests[i].Name = fmt.Sprint(testRequest.Name, i)
			}
			w.Config.Client = newCachedClient(w.Config.Client, requests)
			mgr := newManager(b, w, newEventCache(w.Scheme))
			observe.Of(mgr).Remove(metrics.Default())
			for _, listener := range listeners {
				observe.Of(mgr).Add(listener)
			}
			root := &resourceReconciler{Reconciler: sequence{read, read, syncNothing}, Config: configFor(w, mgr)}
			controller, err := root.SetupWithManagerYieldingController(b.Context(), mgr)
			if err != nil {
				b.Fatal(err)
			}
			reconcile := func(req reconcilers.Request) {
				if result, err := controller.Reconcile(b.Context(), req); err != nil || result != (reconcilers.Result{}) {
					b.Fatalf("result %v, error %v", result, err)
				}
			}
			for _, req := range requests {
				reconcile(req)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				reconcile(requests[i%len(requests)])
			}
		})
	}
}

var syncNothing = &syncReconciler{Sync: func(context.Context, *fixture.Resource) error { return nil }}

// BenchmarkManageInSync measures object managers with a Deployment that is in sync: the version is known, or a new one
// as after each change of the status.
func BenchmarkManageInSync(b *testing.B) {
	labels := map[string]string{"app": "web"}
	desired := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "web:1", Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
					Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
				}}},
			},
		},
	}
	actual := desired.DeepCopy()
	actual.UID, actual.Generation, actual.CreationTimestamp = "1", 1, metav1.Now()
	actual.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "bench", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},` +
			`"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},` +
			`"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"B\"}":{".":{},"f:name":{},` +
			`"f:value":{}}},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},` +
			`"f:containerPort":{},"f:protocol":{}}}}}}}}}`),
	}}
	c := fake.NewClientBuilder().WithScheme(fixture.NewScheme()).Build() // it is not used
	config := reconcilers.Config{Client: c}
	ctx := reconcilers.StashOriginalConfig(reconcilers.StashConfig(b.Context(), config), config)
	parent := newResource()

	type manager interface {
		Manage(context.Context, client.Object, *appsv1.Deployment, *appsv1.Deployment) (*appsv1.Deployment, error)
	}
	updating := &reconcilers.UpdatingObjectManager[*appsv1.Deployment]{
		MergeBeforeUpdate: func(current, desired *appsv1.Deployment) {
			current.Labels, current.Spec = desired.Labels, desired.Spec
		},
	}
	applying := &reconcilers.ApplyingObjectManager[*appsv1.Deployment]{FieldOwner: "bench"}
	for _, bench := range []struct {
		name    string
		manager manager
		changes bool
	}{
		{"Updating", updating, false},
		{"Updating/NewVersion", updating, true},
		{"Applying", applying, false},
		{"Applying/NewVersion", applying, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if bench.changes {
					actual.ResourceVersion = strconv.Itoa(1000 + n)
				}
				managed, err := bench.manager.Manage(ctx, parent, actual, desired)
				if err != nil || managed != actual {
					b.Fatalf("%v, error %v", managed, err)
				}
			}
		})
	}
}

// listingClient also lists the ConfigMap, as an index of the cache does.
type listingClient struct{ unchangingClient }

func (c listingClient) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.ConfigMapList).Items = []corev1.ConfigMap{*c.configMap}
	return nil
}

// BenchmarkPrune measures a no-op request with one child, without and with an inventory.
func BenchmarkPrune(b *testing.B) {
	child := func() subReconciler { return newChild(func(*fixture.Resource, string) {}) }
	for name, tc := range map[string]struct {
		reconciler subReconciler
		child      *corev1.ConfigMap
	}{
		"Without": {child(), newConfigMap("child")},
		"With":    {&prune{Inventory: inventoryKey, Reconciler: child()}, newConfigMap("child", inventoried)},
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			w.Config.Client = listingClient{unchangingClient{
				Client:    w.Config.Client,
				resource:  newResource(settled, recorded(`{"kinds":["ConfigMap"]}`)),
				configMap: tc.child,
			}}
			mgr := newManager(b, w, newEventCache(w.Scheme))
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: tc.reconciler}
			wantErr(b, nil, r.SetupWithManager(b.Context(), mgr))
			b.ReportAllocs()
			for b.Loop() {
				if result, err := r.ReconcileManaged(b.Context(), testRequest); err != nil || result != (reconcilers.Result{}) {
					b.Fatalf("result %v, error %v", result, err)
				}
			}
		})
	}
}
