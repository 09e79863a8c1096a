// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

// castTo returns a cast to a sub reconciler that is a function.
func castTo[CT client.Object](sync func(ctx context.Context, resource CT) (reconcilers.Result, error)) *reconcilers.CastResource[*fixture.Resource, CT] {
	return &reconcilers.CastResource[*fixture.Resource, CT]{
		Reconciler: &reconcilers.SyncReconciler[CT]{SyncWithResult: sync, FinalizeWithResult: sync},
	}
}

func withFields(r *fixture.Resource) {
	r.Labels = map[string]string{"app": "test"}
	r.Spec.Fields = map[string]string{"color": "blue"}
	r.Status.Fields = map[string]string{"old": "value"}
}

func TestCastResource(t *testing.T) {
	type result = reconcilers.Result
	minute := result{RequeueAfter: time.Minute, Priority: new(2)}
	for name, tc := range map[string]struct {
		reason string
		change func(duck *fixture.Duck)
		err    error
		want   func(r *fixture.Resource)
	}{
		"nothing": {"what is only looked at stays as it is", func(*fixture.Duck) {}, nil, func(*fixture.Resource) {}},
		"status": {
			"what the sub reconciler changes, changes", func(duck *fixture.Duck) {
				duck.Status.Fields = map[string]string{"new": "value"}
				duck.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
			}, nil, func(r *fixture.Resource) {
				r.Status.Fields = map[string]string{"new": "value"}
				r.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
			},
		},
		"spec and metadata": {
			"everywhere", func(duck *fixture.Duck) {
				duck.Labels["app"] = "changed"
				duck.Spec.Fields["size"] = "big"
			}, nil, func(r *fixture.Resource) {
				r.Labels["app"] = "changed"
				r.Spec.Fields["size"] = "big"
			},
		},
		"removal": {
			"what is taken away goes", func(duck *fixture.Duck) {
				duck.Labels, duck.Status.Fields = nil, nil
				delete(duck.Spec.Fields, "color")
			}, nil, func(r *fixture.Resource) {
				r.Labels, r.Status.Fields, r.Spec.Fields = nil, nil, nil
			},
		},
		"error": {"an error undoes nothing", func(duck *fixture.Duck) { duck.Status.Fields["new"] = "value" }, errTest, func(r *fixture.Resource) {
			r.Status.Fields["new"] = "value"
		}},
		"halt": {
			"a halt is still a halt", func(duck *fixture.Duck) { duck.Status.Fields["new"] = "value" }, reconcilers.ErrHaltSubReconcilers,
			func(r *fixture.Resource) { r.Status.Fields["new"] = "value" },
		},
		"error without a change": {"the error comes back", func(*fixture.Duck) {}, errTest, func(*fixture.Resource) {}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			resource, want := newResource(withFields), newResource(withFields)
			got, err := castTo(func(ctx context.Context, duck *fixture.Duck) (result, error) {
				equal(t, "spec", map[string]string{"color": "blue"}, duck.Spec.Fields)
				equal(t, "kind", fixture.GroupVersion.WithKind("Resource"), duck.GroupVersionKind())
				current, ok := reconcilers.RetrieveResourceType(ctx).(*fixture.Duck)
				if !ok {
					t.Fatal("the current type is not that of the cast")
				}
				equal(t, "kind of the current type", fixture.GroupVersion.WithKind("Resource"), current.GroupVersionKind())
				if _, ok := reconcilers.RetrieveOriginalResourceType(ctx).(*fixture.Resource); !ok {
					t.Error("the original type has changed")
				}
				tc.change(duck)
				return minute, tc.err
			}).Reconcile(w.Context(), resource)
			wantErr(t, tc.err, err)
			equal(t, "result, for "+tc.reason, minute, got)
			tc.want(want)
			equal(t, "resource, for "+tc.reason, want, resource)
		})
	}
}

func TestCastResource_UnknownFieldsAreDropped(t *testing.T) {
	resource := newResource(withFields)
	want := newResource(withFields)
	want.Labels["app"] = "changed"
	want.Status.ObservedGeneration = 7
	_, err := castTo(func(_ context.Context, deployment *appsv1.Deployment) (reconcilers.Result, error) {
		deployment.Labels["app"] = "changed"
		deployment.Status.ObservedGeneration = 7
		// The resource has none of these, some of which are written out although they are empty.
		deployment.Spec.Paused = true
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "test"}}
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
		deployment.Spec.Template.Labels = map[string]string{"app": "test"}
		deployment.Status.Replicas = 3
		return reconcilers.Result{}, nil
	}).Reconcile(newWorld(t).Context(), resource)
	wantErr(t, nil, err)
	equal(t, "resource", want, resource)
}

func TestCastResource_Failures(t *testing.T) {
	type result = reconcilers.Result
	minute := result{RequeueAfter: time.Minute}
	same := func(change func(*fixture.Resource), err error) *reconcilers.CastResource[*fixture.Resource, *fixture.Resource] {
		return castTo(func(_ context.Context, cast *fixture.Resource) (result, error) {
			change(cast)
			return minute, err
		})
	}
	unexpected := func(*fixture.Resource) { t.Error("the sub reconciler was called") }
	for name, tc := range map[string]struct {
		given  func(*fixture.Resource)
		change func(*fixture.Resource)
		err    error
		want   []error
		result result
	}{
		"not to marshal":         {func(r *fixture.Resource) { r.Spec.ErrOnMarshal = true }, unexpected, nil, []error{fixture.ErrMarshal}, result{}},
		"not to unmarshal":       {func(r *fixture.Resource) { r.Spec.ErrOnUnmarshal = true }, unexpected, nil, []error{fixture.ErrUnmarshal}, result{}},
		"not to marshal after":   {settled, func(r *fixture.Resource) { r.Spec.ErrOnMarshal = true }, nil, []error{fixture.ErrMarshal}, minute},
		"not to unmarshal after": {settled, func(r *fixture.Resource) { r.Spec.ErrOnUnmarshal = true }, nil, []error{fixture.ErrUnmarshal}, minute},
		"two": {
			settled, func(r *fixture.Resource) { r.Spec.ErrOnMarshal = true }, errTest,
			[]error{errTest, fixture.ErrMarshal},
			minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := same(tc.change, tc.err).Reconcile(newWorld(t).Context(), newResource(tc.given))
			equal(t, "result", tc.result, got)
			for _, want := range tc.want {
				wantErr(t, want, err)
				contains(t, err.Error(), want.Error())
			}
		})
	}
}

func TestCastResource_TheResourceChangesMeanwhile(t *testing.T) {
	resource := newResource(withFields)
	_, err := castTo(func(_ context.Context, duck *fixture.Duck) (reconcilers.Result, error) {
		// Somebody holds the resource itself, and its generation has moved on since the cast.
		resource.Generation = 2
		resource.Spec.Fields["else"] = "where"
		duck.Status.Fields["new"] = "value"
		return reconcilers.Result{}, nil
	}).Reconcile(newWorld(t).Context(), resource)
	wantErr(t, nil, err)
	equal(t, "resource", newResource(withFields, func(r *fixture.Resource) {
		r.Generation = 2
		r.Spec.Fields["else"] = "where"
		r.Status.Fields["new"] = "value"
	}), resource)
}

func TestCastResource_BelowARoot(t *testing.T) {
	const finalizer = "test.example.com/it"
	w := newWorld(t, newResource(settled))
	r := &resourceReconciler{Config: w.Config, Reconciler: &castToDuck{Reconciler: reconcilers.Sequence[*fixture.Duck]{
		&duckSync{Sync: func(_ context.Context, duck *fixture.Duck) error {
			duck.Status.Fields = map[string]string{"before": "the finalizer"}
			return nil
		}},
		&reconcilers.WithFinalizer[*fixture.Duck]{Finalizer: finalizer, Reconciler: &duckSync{
			Sync: func(ctx context.Context, duck *fixture.Duck) error {
				equal(t, "finalizers", []string{finalizer}, duck.Finalizers)
				duck.Status.Fields["after"] = "the finalizer"
				return reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, testRequest.NamespacedName, &fixture.Resource{})
			},
		}},
	}}}
	_, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	equal(t, "trace", []string{
		"get Resource default/test",
		`patch Resource default/test application/merge-patch+json {"metadata":{"finalizers":["` + finalizer + `"],"resourceVersion":"999"}}`,
		`event default/test Normal FinalizerPatched: Patched finalizer "` + finalizer + `"`,
		"track Resource default/test for default/test",
		"get Resource default/test",
		"update Resource/status default/test",
		"event default/test Normal StatusUpdated: Updated status",
	}, w.Trace())
	after := stored(w, newResource())
	equal(t, "status", map[string]string{"before": "the finalizer", "after": "the finalizer"}, after.Status.Fields)
	equal(t, "finalizers", []string{finalizer}, after.Finalizers)

	wantErr(t, nil, w.Server.Delete(context.Background(), newResource()))
	w.Trace()
	_, err = r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	if stored(w, newResource()) != nil {
		t.Error("the finalizer has not been cleared")
	}
}

func TestCastResource_ToAnInterface(t *testing.T) {
	resource := newResource(withFields)
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	got, err := castTo(func(ctx context.Context, obj client.Object) (reconcilers.Result, error) {
		if obj != client.Object(resource) {
			t.Error("it is not the same object")
		}
		if _, ok := reconcilers.RetrieveResourceType(ctx).(*fixture.Resource); !ok {
			t.Error("the current type has changed")
		}
		obj.SetLabels(nil)
		return minute, errTest
	}).Reconcile(newWorld(t).Context(), resource)
	wantErr(t, errTest, err)
	equal(t, "result", minute, got)
	equal(t, "labels", nil, resource.Labels)

	_, err = (&reconcilers.CastResource[*fixture.Resource, special]{Name: "Special", Reconciler: reconcilers.Sequence[special]{}}).
		Reconcile(newWorld(t).Context(), resource)
	wantText(t, "*fixture.Resource is not a Special", err)
}

// special is what no resource is.
type special interface {
	client.Object
	IsSpecial() bool
}

func TestCastResource_Kind(t *testing.T) {
	gadget := fixture.GroupVersion.WithKind("Gadget")
	for name, tc := range map[string]struct {
		ctx  func(*world) context.Context
		kind func(*fixture.Resource)
		want string
	}{
		"from the scheme":   {(*world).Context, func(*fixture.Resource) {}, "Resource"},
		"from the resource": {(*world).Context, func(r *fixture.Resource) { r.SetGroupVersionKind(gadget) }, "Gadget"},
		"without a config":  {func(*world) context.Context { return context.Background() }, func(*fixture.Resource) {}, ""},
		"with an empty config": {func(*world) context.Context {
			return reconcilers.StashOriginalConfig(context.Background(), reconcilers.Config{})
		}, func(*fixture.Resource) {}, ""},
		"of the original scope": {func(w *world) context.Context { return reconcilers.StashConfig(w.Context(), reconcilers.Config{}) }, func(*fixture.Resource) {}, "Resource"},
	} {
		t.Run(name, func(t *testing.T) {
			called := false
			_, err := castTo(func(_ context.Context, duck *fixture.Duck) (reconcilers.Result, error) {
				called = true
				equal(t, "kind", tc.want, duck.Kind)
				return reconcilers.Result{}, nil
			}).Reconcile(tc.ctx(newWorld(t)), newResource(tc.kind))
			wantErr(t, nil, err)
			equal(t, "called", true, called)
		})
	}
	_, err := (&reconcilers.CastResource[*fixture.Duck, *fixture.Duck]{Reconciler: reconcilers.Sequence[*fixture.Duck]{}}).
		Reconcile(newWorld(t).Context(), &fixture.Duck{})
	wantText(t, "object must directly define APIVersion and Kind", err)
}

func TestCastResource_SetsUpWithTheOtherType(t *testing.T) {
	for name, tc := range map[string]struct {
		build func(setup func(context.Context, reconcilers.Manager, *reconcilers.Builder) error) subReconciler
		want  client.Object
	}{
		"duck": {func(setup func(context.Context, reconcilers.Manager, *reconcilers.Builder) error) subReconciler {
			return &castToDuck{Reconciler: &duckSync{Setup: setup, Sync: func(context.Context, *fixture.Duck) error { return nil }}}
		}, &fixture.Duck{}},
		"interface": {func(setup func(context.Context, reconcilers.Manager, *reconcilers.Builder) error) subReconciler {
			return &reconcilers.CastResource[*fixture.Resource, client.Object]{Reconciler: &reconcilers.SyncReconciler[client.Object]{
				Setup: setup, Sync: func(context.Context, client.Object) error { return nil },
			}}
		}, &fixture.Resource{}},
	} {
		t.Run(name, func(t *testing.T) {
			called := false
			r := tc.build(func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error {
				called = true
				equal(t, "current type", tc.want, reconcilers.RetrieveResourceType(ctx))
				return nil
			})
			wantErr(t, nil, r.SetupWithManager(newWorld(t).Context(), nil, nil))
			equal(t, "called", true, called)
		})
	}
}
