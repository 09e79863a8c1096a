// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
)

// Cases on one cluster use the same names, so they must run one after another.
func TestParallelCasesTakeTurns(t *testing.T) {
	c := newCluster(t)
	var atWork, runs atomic.Int32
	tests := rtesting.ReconcilerTests{}
	for _, name := range []string{"a", "b", "c", "d"} {
		tests[name] = testCase{
			GivenObjects: []client.Object{newConfigMap("same")}, ExpectCreates: []client.Object{newConfigMap("created")},
		}
	}
	t.Run("cases", func(t *testing.T) {
		tests.Run(t, scheme, doing(c, func(w *world) {
			if atWork.Add(1) != 1 {
				w.Error("another case is at work")
			}
			defer atWork.Add(-1)
			runs.Add(1)
			w.must(w.Create(w.ctx, newConfigMap("created")))
		}), c.on(), rtesting.Parallel())
	})
	if runs.Load() != 4 {
		t.Errorf("%d cases have run, want 4", runs.Load())
	}
}

func TestAdditionalClusters(t *testing.T) {
	c := newCluster(t)
	remote, err := sandbox.Start(t.Context(), sandbox.Options{Controllers: []string{"none"}, DisablePods: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remote.Stop(); err != nil {
			t.Error(err)
		}
	})
	here, there := newConfigMap("same"), newConfigMap("same")
	here.Data, there.Data = map[string]string{"where": "here"}, map[string]string{"where": "there"}
	moved := there.DeepCopy()
	moved.Name = "moved"
	tc := testCase{
		GivenObjects: []client.Object{here},
		AdditionalConfigs: map[string]rtesting.ExpectConfig{
			"remote": {GivenObjects: []client.Object{there}, ExpectCreates: []client.Object{moved}},
		},
	}
	tc.Run(t, scheme, doing(c, func(w *world) {
		configs := reconcilers.RetrieveAdditionalConfigs(w.ctx)
		for want, config := range map[string]reconcilers.Config{"here": w.Config, "there": configs["remote"]} {
			read := newConfigMap("same")
			w.must(config.Get(w.ctx, client.ObjectKeyFromObject(read), read))
			if read.Data["where"] != want {
				w.Errorf("%s: %v", want, read.Data)
			}
		}
		w.must(configs["remote"].Create(w.ctx, moved.DeepCopy()))
		if err := w.Get(w.ctx, client.ObjectKeyFromObject(moved), moved.DeepCopy()); !apierrs.IsNotFound(err) {
			w.Errorf("an object created on the other cluster exists here: %v", err)
		}
	}), c.on(), rtesting.OnAdditionalCluster("remote", remote.RESTConfig()))
}

func TestSubReconcilerCase(t *testing.T) {
	c := newCluster(t)
	const key stash.Key = "deployment"
	resource := newResource("resource")
	resource.Generation = 2
	finalized := resource.DeepCopy()
	finalized.ResourceVersion, finalized.Finalizers = "1000", []string{finalizer}
	patch := rtesting.PatchRef{
		Group: "fixture.trueup.dev", Kind: "Resource", Namespace: namespace, Name: "resource",
		PatchType: "application/merge-patch+json",
		Patch:     []byte(`{"metadata":{"finalizers":["trueup.dev/finalizer"],"resourceVersion":"999"}}`),
	}
	tests := rtesting.SubReconcilerTests[*fixture.Resource]{
		"case": {
			Resource: resource, ExpectResource: finalized, GivenObjects: []client.Object{newDeployment()},
			ExpectPatches:       []rtesting.PatchRef{patch},
			ExpectStashedValues: map[stash.Key]any{key: newDeployment()},
			ExpectEvents: []rtesting.Event{rtesting.NewEvent(resource, scheme, corev1.EventTypeNormal, "FinalizerPatched",
				"Patched finalizer %q", finalizer)},
		},
	}
	factory := func(*testing.T, *subCase, reconcilers.Config) reconcilers.SubReconciler[*fixture.Resource] {
		return &reconcilers.SyncReconciler[*fixture.Resource]{Sync: func(
			ctx context.Context, resource *fixture.Resource,
		) error {
			read := newDeployment()
			if err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, client.ObjectKeyFromObject(read), read); err != nil {
				return err
			}
			stash.StoreValue(ctx, key, read)
			return reconcilers.AddFinalizer(ctx, resource, finalizer)
		}}
	}
	t.Run("Fake", func(t *testing.T) { tests.Run(t, scheme, factory) })
	t.Run("Cluster", func(t *testing.T) { tests.Run(t, scheme, factory, c.on()) })
}

func TestWebhookCase(t *testing.T) {
	c := newCluster(t)
	given := newConfigMap("limits")
	given.Data = map[string]string{"limit": "7"}
	tests := rtesting.AdmissionWebhookTests{"case": {
		GivenObjects:     []client.Object{given},
		Request:          &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "request"}},
		ExpectedResponse: admission.Allowed("7"),
	}}
	factory := func(
		_ *testing.T, _ context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
	) (*admission.Webhook, error) {
		return &admission.Webhook{Handler: admission.HandlerFunc(func(
			ctx context.Context, _ admission.Request,
		) admission.Response {
			read := newConfigMap("limits")
			if err := c.Get(ctx, client.ObjectKeyFromObject(read), read); err != nil {
				return admission.Errored(500, err)
			}
			return admission.Allowed(read.Data["limit"])
		})}, nil
	}
	t.Run("Fake", func(t *testing.T) { tests.RunWithContext(t, scheme, factory) })
	t.Run("Cluster", func(t *testing.T) { tests.RunWithContext(t, scheme, factory, c.on()) })
}

// An object can be given during a case, as tests of object managers do.
func TestAddGiven(t *testing.T) {
	runOnBoth(t, testCase{}, func(w *world) {
		w.Client.(rtesting.TestClient).AddGiven(known(), newResource("added"))
		read := newConfigMap("known")
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(read), read))
		if diff := cmp.Diff(known(), read); diff != "" {
			w.Errorf("(-want +got):\n%s", diff)
		}
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(newResource("added")), newResource("added")))
		defer func() {
			if recover() == nil {
				w.Error("adding it again does not panic")
			}
		}()
		w.Client.(rtesting.TestClient).AddGiven(known())
	})
}

// Discovery returns what the case gives, if the cluster serves that. Otherwise it returns everything.
func TestDiscovery(t *testing.T) {
	c := newCluster(t)
	for name, resources := range map[string][]*metav1.APIResourceList{
		"given": {
			{
				GroupVersion: "apps/v1",
				APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true}},
			},
		},
		"all": nil,
	} {
		t.Run(name, func(t *testing.T) {
			tc := testCase{GivenAPIResources: resources}
			tc.Run(t, scheme, doing(c, func(w *world) {
				list, err := w.Discovery.ServerResourcesForGroupVersion("apps/v1")
				w.must(err)
				if (len(list.APIResources) == 1) != (resources != nil) {
					w.Errorf("%d resources in apps/v1", len(list.APIResources))
				}
				_, err = w.RESTMapper().KindFor(corev1.SchemeGroupVersion.WithResource("configmaps"))
				if (err != nil) != (resources != nil) {
					w.Errorf("the kind of config maps: %v", err)
				}
			}), c.on())
		})
	}
}

func TestLists(t *testing.T) {
	one, two, three := newConfigMap("one"), newConfigMap("two"), newConfigMap("three")
	two.Labels = map[string]string{"number": "two"}
	c := newCluster(t)
	tc := testCase{GivenObjects: []client.Object{one, two, three}}
	tc.Run(t, scheme, doing(c, func(w *world) {
		for name, tt := range map[string]struct {
			opts []client.ListOption
			want []string
		}{
			"all":    {nil, []string{"one", "three", "two"}},
			"labels": {[]client.ListOption{client.MatchingLabels{"number": "two"}}, []string{"two"}},
			"fields": {[]client.ListOption{client.MatchingFields{"metadata.name": "one"}}, []string{"one"}},
		} {
			var list corev1.ConfigMapList
			w.must(w.List(w.ctx, &list, tt.opts...))
			var names []string
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
			if diff := cmp.Diff(tt.want, names); diff != "" {
				w.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		metadata := &metav1.PartialObjectMetadataList{}
		metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		w.must(w.List(w.ctx, metadata, client.InNamespace(namespace)))
		if len(metadata.Items) != 3 || metadata.Items[0].Kind != "ConfigMap" || metadata.Items[0].ResourceVersion != "999" {
			w.Errorf("metadata: %v", metadata.Items)
		}
	}), c.on())
}

// Reconcilers list by indexes of their cache, which a server does not have.
func TestIndexes(t *testing.T) {
	red, blue := newConfigMap("red"), newConfigMap("blue")
	red.Data, blue.Data = map[string]string{"color": "red"}, map[string]string{"color": "blue"}
	elsewhere := red.DeepCopy()
	elsewhere.Namespace = "elsewhere"
	runOnBoth(t, testCase{
		GivenObjects: []client.Object{red, blue, elsewhere},
		WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder {
			return b.WithIndex(&corev1.ConfigMap{}, "color", func(obj client.Object) []string {
				return []string{obj.(*corev1.ConfigMap).Data["color"]}
			})
		},
	}, func(w *world) {
		var list corev1.ConfigMapList
		w.must(w.List(w.ctx, &list, client.MatchingFields{"color": "red"}, client.InNamespace(namespace)))
		if len(list.Items) != 1 || list.Items[0].Name != "red" || list.Items[0].ResourceVersion != "999" {
			w.Errorf("the red ones are %v", list.Items)
		}
		if err := w.List(w.ctx, &list, client.MatchingFields{"shape": "round"}); err == nil {
			w.Error("listing without an index is possible")
		}
	})
}
