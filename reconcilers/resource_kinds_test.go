// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

// runWith reconciles the resource of another type once, with a sub reconciler that notes what it is called with.
func runWith[T client.Object](t *testing.T, w *world, r *reconcilers.ResourceReconciler[T], sub func(T) error) (called bool, err error) {
	t.Helper()
	r.Config = w.Config
	r.Reconciler = &reconcilers.SyncReconciler[T]{Sync: func(_ context.Context, resource T) error {
		called = true
		return sub(resource)
	}}
	_, err = r.Reconcile(context.Background(), testRequest)
	return called, err
}

func TestResourceReconciler_StylesOfDefaulting(t *testing.T) {
	fails := map[string]string{fixture.DefaulterField: "fail"}
	meta := newResource().ObjectMeta
	for name, reconcile := range map[string]func(fields map[string]string) (string, bool, error){
		"Default(ctx) error": func(fields map[string]string) (field string, called bool, err error) {
			w := newWorld(t, newResource())
			return reconcileDefaults(t, w, fields, func(r *fixture.Resource) *fixture.ResourceSpec { return &r.Spec })
		},
		"Default(ctx, T) error": func(fields map[string]string) (string, bool, error) {
			w := newWorld(t, &fixture.ResourceAdmissionDefault{ObjectMeta: meta})
			return reconcileDefaults(t, w, fields, func(r *fixture.ResourceAdmissionDefault) *fixture.ResourceSpec { return &r.Spec })
		},
		"Default(ctx, runtime.Object) error": func(fields map[string]string) (string, bool, error) {
			w := newWorld(t, &fixture.ResourceObjectDefault{ObjectMeta: meta})
			return reconcileDefaults(t, w, fields, func(r *fixture.ResourceObjectDefault) *fixture.ResourceSpec { return &r.Spec })
		},
	} {
		t.Run(name, func(t *testing.T) {
			field, called, err := reconcile(nil)
			wantErr(t, nil, err)
			equal(t, "called", true, called)
			equal(t, "defaulted field", "ran", field)

			_, called, err = reconcile(fails)
			wantErr(t, fixture.ErrDefault, err)
			equal(t, "called though defaulting failed", false, called)
		})
	}
	t.Run("Default()", func(t *testing.T) {
		w := newWorld(t, &fixture.ResourceLegacyDefault{ObjectMeta: meta})
		field, called, err := reconcileDefaults(t, w, nil, func(r *fixture.ResourceLegacyDefault) *fixture.ResourceSpec { return &r.Spec })
		wantErr(t, nil, err)
		equal(t, "called", true, called)
		equal(t, "defaulted field", "ran", field)
	})
}

// reconcileDefaults reconciles a resource with fields in its spec and returns the defaulted field.
func reconcileDefaults[T client.Object](
	t *testing.T, w *world, fields map[string]string, spec func(T) *fixture.ResourceSpec,
) (field string, called bool, err error) {
	w.Fetched = func(obj client.Object) {
		if resource, ok := obj.(T); ok {
			spec(resource).Fields = fields
		}
	}
	called, err = runWith(t, w, &reconcilers.ResourceReconciler[T]{}, func(resource T) error {
		field = spec(resource).Fields[fixture.DefaulterField]
		return nil
	})
	return field, called, err
}

func TestResourceReconciler_KindsOfStatus(t *testing.T) {
	meta := newResource().ObjectMeta
	meta.ResourceVersion = ""

	t.Run("none", func(t *testing.T) {
		w := newWorld(t, &fixture.ResourceNoStatus{ObjectMeta: meta})
		called, err := runWith(t, w, &reconcilers.ResourceReconciler[*fixture.ResourceNoStatus]{}, func(r *fixture.ResourceNoStatus) error {
			r.Spec.Fields = map[string]string{"changed": "in memory"}
			return nil
		})
		wantErr(t, nil, err)
		equal(t, "called", true, called)
		equal(t, "writes", nil, w.Writes())
	})
	t.Run("nil", func(t *testing.T) {
		w := newWorld(t, &fixture.ResourceNilableStatus{ObjectMeta: meta})
		_, err := runWith(t, w, &reconcilers.ResourceReconciler[*fixture.ResourceNilableStatus]{}, func(r *fixture.ResourceNilableStatus) error {
			equal(t, "status: a nil status is left nil", nil, r.Status)
			return nil
		})
		wantErr(t, nil, err)
		equal(t, "writes", nil, w.Writes())
	})
	t.Run("was nil", func(t *testing.T) {
		given := &fixture.ResourceNilableStatus{ObjectMeta: meta}
		w := newWorld(t, given)
		_, err := runWith(t, w, &reconcilers.ResourceReconciler[*fixture.ResourceNilableStatus]{}, func(r *fixture.ResourceNilableStatus) error {
			r.Status = &fixture.ResourceStatus{Fields: map[string]string{"Reconciler": "ran"}}
			return nil
		})
		wantErr(t, nil, err)
		after := stored(w, given)
		equal(t, "fields", map[string]string{"Reconciler": "ran"}, after.Status.Fields)
		equal(t, "observed generation", 1, after.Status.ObservedGeneration)
	})
	t.Run("pointer", func(t *testing.T) {
		given := &fixture.ResourceNilableStatus{ObjectMeta: meta, Status: &fixture.ResourceStatus{}}
		w := newWorld(t, given)
		_, err := runWith(t, w, &reconcilers.ResourceReconciler[*fixture.ResourceNilableStatus]{}, func(*fixture.ResourceNilableStatus) error { return nil })
		wantErr(t, nil, err)
		equal(t, "reason of the initialized condition", "Initializing", stored(w, given).Status.GetCondition("Ready").Reason)
	})
	t.Run("empty", func(t *testing.T) {
		given := &fixture.ResourceEmptyStatus{ObjectMeta: meta}
		w := newWorld(t, given)
		_, err := runWith(t, w, &reconcilers.ResourceReconciler[*fixture.ResourceEmptyStatus]{}, func(r *fixture.ResourceEmptyStatus) error {
			r.Status.Fields = map[string]string{"Reconciler": "ran"}
			return nil
		})
		wantErr(t, nil, err)
		equal(t, "fields", map[string]string{"Reconciler": "ran"}, stored(w, given).Status.Fields)
	})
	t.Run("initialized without a context", func(t *testing.T) {
		given := &fixture.ResourceLegacyConditions{ObjectMeta: meta}
		w := newWorld(t, given)
		_, err := runWith(t, w, &reconcilers.ResourceReconciler[*fixture.ResourceLegacyConditions]{}, func(*fixture.ResourceLegacyConditions) error { return nil })
		wantErr(t, nil, err)
		equal(t, "reason of the initialized condition", "Initializing", stored(w, given).Status.GetCondition("Ready").Reason)
	})
	t.Run("unstructured", func(t *testing.T) {
		given := newResource()
		w := newWorld(t, given)
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(fixture.GroupVersion.WithKind("Resource"))
		_, err := runWith(t, w, &reconcilers.ResourceReconciler[*unstructured.Unstructured]{Type: u}, func(r *unstructured.Unstructured) error {
			if _, found := r.Object["status"].(map[string]any)["conditions"]; found {
				t.Error("conditions were initialized")
			}
			return unstructured.SetNestedField(r.Object, "ran", "status", "fields", "Reconciler")
		})
		wantErr(t, nil, err)
		equal(t, "writes: unstructured objects hold everything, so they are updated", []string{
			"update Resource/status default/test", "event default/test Normal StatusUpdated: Updated status",
		}, w.Writes())
		equal(t, "status", fixture.ResourceStatus{Fields: map[string]string{"Reconciler": "ran"}}, stored(w, given).Status)
	})
}

func TestResourceReconciler_Duck(t *testing.T) {
	const patch = "patch Resource/status default/test application/merge-patch+json " +
		`{"spec":{"fields":{"Defaulter":"ran"}},"status":{"fields":{"Reconciler":"ran"}}}`
	given := newResource(func(r *fixture.Resource) { r.Generation = 0 })
	setDuckField := func(d *fixture.Duck) error {
		d.Status.Fields = map[string]string{"Reconciler": "ran"}
		return nil
	}
	t.Run("patched", func(t *testing.T) {
		w := newWorld(t, given)
		_, err := runWith(t, w, &reconcilers.ResourceReconciler[*fixture.Duck]{Type: fixture.NewDuck("", "")}, setDuckField)
		wantErr(t, nil, err)
		equal(t, "writes: the rest of a duck is not known, so it is patched", []string{
			patch, "event default/test Normal StatusPatched: Patched status",
		}, w.Writes())
		equal(t, "fields", map[string]string{"Reconciler": "ran"}, stored(w, given).Status.Fields)
	})
	for name, err := range map[string]error{"patch fails": errTest, "a patch does not know conflicts": errConflict} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, given).Fail("patch", err)
			_, got := runWith(t, w, &reconcilers.ResourceReconciler[*fixture.Duck]{Type: fixture.NewDuck("", "")}, setDuckField)
			wantErr(t, err, got)
			equal(t, "writes", []string{
				patch, "event default/test Warning StatusPatchFailed: Failed to patch status: " + err.Error(),
			}, w.Writes())
		})
	}
	t.Run("defaulting fails", func(t *testing.T) {
		w := newWorld(t, newResource(func(r *fixture.Resource) { r.Spec.Fields = map[string]string{fixture.DefaulterField: "fail"} }))
		called, err := runWith(t, w, &reconcilers.ResourceReconciler[*fixture.Duck]{Type: fixture.NewDuck("", "")}, setDuckField)
		wantErr(t, fixture.ErrDefault, err)
		equal(t, "called", false, called)
	})
}
