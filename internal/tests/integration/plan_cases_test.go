// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/plan"
	"trueup.dev/reconcilers"
)

// planCase is a plan of the request "parent".
type planCase struct {
	given []client.Object
	owns  []client.Object // kinds that the controller owns
	do    func(ctx context.Context, c client.Client, parent *fixture.Resource) (reconcile.Result, error)
	want  string
}

func (c *planCase) setUp(_ context.Context, mgr ctrl.Manager) error {
	bldr := ctrl.NewControllerManagedBy(mgr).For(&fixture.Resource{})
	for _, kind := range c.owns {
		bldr.Owns(kind)
	}
	return bldr.Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		parent := &fixture.Resource{}
		if err := mgr.GetClient().Get(ctx, r.NamespacedName, parent); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		return c.do(ctx, mgr.GetClient(), parent)
	}))
}

func done(err error) (reconcile.Result, error) { return reconcile.Result{}, err }

func configMap(name string, edit ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := newConfigMap(name, nil)
	for _, f := range edit {
		f(cm)
	}
	return cm
}

func TestPlan_Cases(t *testing.T) {
	t.Parallel()
	meta := func(parent *fixture.Resource, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: parent.Namespace, Name: name}
	}
	for name, c := range map[string]planCase{
		"a refused object": {
			do: func(ctx context.Context, c client.Client, parent *fixture.Resource) (reconcile.Result, error) {
				return done(c.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta(parent, "Not_Valid")}))
			},
			want: `! error of resource NS/parent: ConfigMap "Not_Valid" is invalid: metadata.name: Invalid value: "Not_Valid": ` +
				`a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start ` +
				`and end with an alphanumeric character (e.g. 'example.com', regex used for validation is ` +
				`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
No changes.
`,
		},
		"a panic": {
			do: func(context.Context, client.Client, *fixture.Resource) (reconcile.Result, error) {
				panic("at the disco")
			},
			want: `! error of resource NS/parent: panic: at the disco (in integration.TestPlan_Cases.func3, plan_cases_test.go:79)
No changes.
`,
		},
		"an error after a write is retried": {
			do: func(ctx context.Context, c client.Client, parent *fixture.Resource) (reconcile.Result, error) {
				made := &corev1.ConfigMap{ObjectMeta: meta(parent, "made")}
				if err := c.Get(ctx, client.ObjectKeyFromObject(made), made); err == nil {
					return done(nil)
				}
				return done(errors.Join(c.Create(ctx, made), errors.New("not yet")))
			},
			want: `+ ConfigMap NS/made
Plan: 1 to create, nothing to delete.
`,
		},
		"an error that stays": {
			do: func(ctx context.Context, c client.Client, parent *fixture.Resource) (reconcile.Result, error) {
				err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta(parent, "new")})
				return done(err)
			},
			given: []client.Object{configMap("new")},
			want: `! error of resource NS/parent: configmaps "new" already exists
No changes.
`,
		},
		"writes without end": {
			do: func(ctx context.Context, c client.Client, parent *fixture.Resource) (reconcile.Result, error) {
				n, _ := strconv.Atoi(parent.Annotations["count"])
				parent.Annotations = map[string]string{"count": strconv.Itoa(n + 1)}
				return done(c.Update(ctx, parent))
			},
			want: `~ Resource NS/parent
    metadata.annotations[count] = "10"
? unknown: what happens after 10 reconciles of resource NS/parent: its writes trigger it again and again
Plan: 1 to update, nothing to delete.
`,
		},
		"an object with finalizers, and one that is orphaned": {
			given: []client.Object{
				configMap("held", func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.com/hold"} }),
				configMap("free"),
			},
			do: func(ctx context.Context, c client.Client, parent *fixture.Resource) (reconcile.Result, error) {
				return done(errors.Join(
					client.IgnoreNotFound(c.Delete(ctx, &corev1.ConfigMap{ObjectMeta: meta(parent, "held")})),
					client.IgnoreNotFound(c.Delete(ctx, &corev1.ConfigMap{ObjectMeta: meta(parent, "free")},
						client.PropagationPolicy(metav1.DeletePropagationOrphan))),
				))
			},
			want: `- ConfigMap NS/held (waits for finalizers: example.com/hold)
- ConfigMap NS/free
~ ConfigMap NS/dependent
    metadata.ownerReferences removed, was [{"apiVersion":"v1","kind":"ConfigMap","name":"free","uid":"FREE"}]
Plan: 1 to update, 2 to delete.
`,
		},
		"a replaced object": {
			given: []client.Object{configMap("old", func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"a": "1"} })},
			do: func(ctx context.Context, c client.Client, parent *fixture.Resource) (reconcile.Result, error) {
				old := &corev1.ConfigMap{}
				err := c.Get(ctx, client.ObjectKey{Namespace: parent.Namespace, Name: "old"}, old)
				if err != nil || old.Data["a"] == "2" {
					return done(err)
				}
				made := &corev1.ConfigMap{ObjectMeta: meta(parent, "old"), Data: map[string]string{"a": "2"}}
				return done(errors.Join(c.Delete(ctx, old), c.Create(ctx, made)))
			},
			want: `± ConfigMap NS/old
    data[a]: "1" → "2"
Plan: 1 to replace.
`,
		},
		"created and deleted": {
			do: func(ctx context.Context, c client.Client, parent *fixture.Resource) (reconcile.Result, error) {
				made := &corev1.ConfigMap{ObjectMeta: meta(parent, "draft")}
				return done(errors.Join(c.Create(ctx, made), c.Delete(ctx, made)))
			},
			want: "No changes.\n",
		},
		"requeued after writes, and afterwards": {
			owns: []client.Object{},
			do: func(ctx context.Context, c client.Client, parent *fixture.Resource) (reconcile.Result, error) {
				err := c.Get(ctx, client.ObjectKey{Namespace: parent.Namespace, Name: "first"}, &corev1.ConfigMap{})
				name := "second"
				if err != nil {
					name = "first"
				}
				err = c.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta(parent, name)})
				return reconcile.Result{RequeueAfter: time.Hour}, client.IgnoreAlreadyExists(err)
			},
			want: `+ ConfigMap NS/first
+ ConfigMap NS/second
Plan: 2 to create, nothing to delete. The next reconcile is due after 1h0m0s.
`,
		},
		"a generated name, unstructured": {
			do: func(ctx context.Context, c client.Client, parent *fixture.Resource) (reconcile.Result, error) {
				list := &unstructured.UnstructuredList{}
				list.SetAPIVersion("v1")
				list.SetKind("ConfigMapList")
				if err := c.List(ctx, list, client.InNamespace(parent.Namespace), client.MatchingLabels{"of": "me"}); err != nil ||
					len(list.Items) > 0 {
					return done(err)
				}
				u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "1"}}}
				u.SetAPIVersion("v1")
				u.SetKind("ConfigMap")
				u.SetNamespace(parent.Namespace)
				u.SetGenerateName("some-")
				u.SetLabels(map[string]string{"of": "me"})
				return reconcile.Result{RequeueAfter: time.Second}, c.Create(ctx, u)
			},
			want: `+ ConfigMap NS/some-<generated>
    metadata.labels[of] = "me"
    data[a] = "1"
Plan: 1 to create, nothing to delete.
`,
		},
		"an effect of a status, a patch and a deletion of all": {
			given: []client.Object{
				configMap("one", func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"all": "of-them"} }),
				configMap("two", func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"all": "of-them"} }),
			},
			do: func(ctx context.Context, c client.Client, parent *fixture.Resource) (reconcile.Result, error) {
				before := parent.DeepCopy()
				parent.Status.Fields = map[string]string{"b": "2"}
				parent.Labels = map[string]string{"ignored": "by the status"}
				return done(errors.Join(
					c.Status().Patch(ctx, parent, client.MergeFrom(before)),
					c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(parent.Namespace),
						client.MatchingLabels{"all": "of-them"}),
				))
			},
			want: `~ Resource NS/parent
    status.fields[b] = "2"
- ConfigMap NS/one
- ConfigMap NS/two
Plan: 1 to update, 2 to delete.
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			cluster := e.writesNothing(e.RESTConfig())
			parent := newResource("parent", nil)
			parent.Namespace = e.Namespace
			e.Add(parent)
			e.ReleaseAtEnd(&corev1.ConfigMapList{})
			var free string
			for _, obj := range c.given {
				obj = obj.DeepCopyObject().(client.Object)
				obj.SetNamespace(e.Namespace)
				e.Add(obj)
				if obj.GetName() == "free" {
					free = string(obj.GetUID())
					dependent := configMap("dependent")
					dependent.Namespace = e.Namespace
					e.Must(controllerutil.SetOwnerReference(obj, dependent, e.Scheme()))
					e.Add(dependent)
				}
			}
			before := e.state()
			got := e.text(e.plan(cluster, c.setUp), parent)
			if free != "" {
				got = strings.ReplaceAll(got, free, "FREE")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, e.state()); diff != "" {
				t.Errorf("the plan changed the cluster (-want +got):\n%s", diff)
			}
		})
	}
}

// Two controllers: one creates what the other one reconciles. The second one applies, and the API server defaults.
func TestPlan_Chain(t *testing.T) {
	e := newEnv(t)
	cluster := e.writesNothing(e.RESTConfig())
	first := &planCase{do: func(ctx context.Context, c client.Client, parent *fixture.Resource) (reconcile.Result, error) {
		if parent.Name != "parent" {
			return reconcile.Result{}, nil
		}
		made := newResource("made", map[string]string{"image": "one"})
		made.Namespace = parent.Namespace
		return done(client.IgnoreAlreadyExists(c.Create(ctx, made)))
	}}
	second := root(&reconcilers.ChildReconciler[*fixture.Resource, *appsv1.Deployment, *appsv1.DeploymentList]{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*appsv1.Deployment, error) {
			if parent.Spec.Fields["image"] == "" {
				return nil, nil
			}
			template := runOnce("web", parent.Spec.Fields["image"])
			template.Spec.RestartPolicy = ""
			return &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name},
				Spec: appsv1.DeploymentSpec{
					Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
				},
			}, nil
		},
		ChildObjectManager: &reconcilers.ApplyingObjectManager[*appsv1.Deployment]{FieldOwner: "web"},
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *fixture.Resource, _ *appsv1.Deployment, err error,
		) error {
			return err
		},
	})
	parent := newResource("parent", nil)
	parent.Namespace = e.Namespace
	e.Add(parent)
	both := func(ctx context.Context, mgr ctrl.Manager) error {
		return errors.Join(
			ctrl.NewControllerManagedBy(mgr).Named("first").For(&fixture.Resource{}).
				Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
					found := &fixture.Resource{}
					if err := mgr.GetClient().Get(ctx, r.NamespacedName, found); err != nil {
						return done(client.IgnoreNotFound(err))
					}
					return first.do(ctx, mgr.GetClient(), found)
				})),
			planned(second)(ctx, mgr),
		)
	}
	made, err := plan.Run(e.Context(), cluster, both, plan.Request{
		Controller: "first", Namespace: e.Namespace, Name: "parent",
	})
	e.Must(err)
	want := []string{"create Resource made", "create Deployment made"}
	var got []string
	for _, c := range made.Changes {
		got = append(got, string(c.Action)+" "+c.Kind+" "+c.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(made.Errors) > 0 {
		t.Errorf("changes (-want +got):\n%s\n%s", diff, made.Text())
	}
}
