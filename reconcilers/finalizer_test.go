// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

const (
	added   = `patch Resource default/test application/merge-patch+json {"metadata":{"finalizers":["test-finalizer"],"resourceVersion":"999"}}`
	cleared = `patch Resource default/test application/merge-patch+json {"metadata":{"finalizers":null,"resourceVersion":"999"}}`
	patched = `event default/test Normal FinalizerPatched: Patched finalizer "test-finalizer"`
	failed  = `event default/test Warning FinalizerPatchFailed: Failed to patch finalizer "test-finalizer": failure of the test`
)

func TestFinalizers(t *testing.T) {
	type change = func(context.Context, client.Object, string) error
	for name, tc := range map[string]struct {
		change     change
		finalizer  string
		given      *fixture.Resource
		fail       error
		want       []string
		wantErr    error
		finalizers []string
	}{
		"add":         {change: reconcilers.AddFinalizer, finalizer: "test-finalizer", given: newResource(), want: []string{added, patched}, finalizers: []string{"test-finalizer"}},
		"add again":   {change: reconcilers.AddFinalizer, finalizer: "test-finalizer", given: newResource(finalizer("test-finalizer")), finalizers: []string{"test-finalizer"}},
		"add none":    {change: reconcilers.AddFinalizer, given: newResource()},
		"add fails":   {change: reconcilers.AddFinalizer, finalizer: "test-finalizer", given: newResource(), fail: errTest, want: []string{added, failed}, wantErr: errTest},
		"add quietly": {change: reconcilers.AddFinalizer, finalizer: "test-finalizer", given: newResource(), fail: errQuiet, want: []string{added}, wantErr: errQuiet},
		"clear":       {change: reconcilers.ClearFinalizer, finalizer: "test-finalizer", given: newResource(finalizer("test-finalizer")), want: []string{cleared, patched}},
		"clear again": {change: reconcilers.ClearFinalizer, finalizer: "test-finalizer", given: newResource()},
		"clear none":  {change: reconcilers.ClearFinalizer, given: newResource(finalizer("")), finalizers: []string{""}},
		"clear fails": {change: reconcilers.ClearFinalizer, finalizer: "test-finalizer", given: newResource(finalizer("test-finalizer")), fail: errTest, want: []string{cleared, failed}, wantErr: errTest, finalizers: []string{"test-finalizer"}},
		"add one more": {
			change: reconcilers.AddFinalizer, finalizer: "test-finalizer", given: newResource(finalizer("other")),
			want: []string{
				`patch Resource default/test application/merge-patch+json {"metadata":{"finalizers":["other","test-finalizer"],"resourceVersion":"999"}}`, patched,
			},
			finalizers: []string{"other", "test-finalizer"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.given)
			if tc.fail != nil {
				w.Fail("patch", tc.fail)
			}
			resource := tc.given.DeepCopy()
			resource.Spec.Fields = map[string]string{"changed": "in memory"}
			resource.Status.Fields = map[string]string{"changed": "in memory"}
			resource.CreationTimestamp = metav1.Time{}
			inMemory := resource.DeepCopy()

			wantErr(t, tc.wantErr, tc.change(w.Context(), resource, tc.finalizer))
			equal(t, "writes", tc.want, w.Writes())
			equal(t, "finalizers", tc.finalizers, resource.Finalizers)
			after := stored(w, tc.given)
			if tc.wantErr == nil {
				equal(t, "stored finalizers", tc.finalizers, after.Finalizers)
			}
			equal(t, "resource version", after.ResourceVersion, resource.ResourceVersion)

			// Nothing but finalizers, resource version and generation may come back from the server.
			inMemory.Finalizers, inMemory.ResourceVersion, inMemory.Generation = resource.Finalizers, resource.ResourceVersion, resource.Generation
			equal(t, "the rest of the resource", inMemory, resource)
		})
	}
}

func TestFinalizers_CopyTheGenerationBack(t *testing.T) {
	given := newResource(func(r *fixture.Resource) { r.Generation = 5 })
	w := newWorld(t, given)
	resource := given.DeepCopy()
	resource.Generation = 4
	wantErr(t, nil, reconcilers.AddFinalizer(w.Context(), resource, "test-finalizer"))
	equal(t, "generation", 5, resource.Generation)
}

func TestFinalizers_OptimisticLock(t *testing.T) {
	w := newWorld(t, newResource())
	resource := newResource(func(r *fixture.Resource) { r.ResourceVersion = "12" })
	if err := reconcilers.AddFinalizer(w.Context(), resource, "test-finalizer"); err == nil {
		t.Error("a resource that has changed meanwhile got a finalizer")
	}
	equal(t, "stored finalizers", nil, stored(w, resource).Finalizers)
}

func TestFinalizers_OtherTypes(t *testing.T) {
	t.Run("duck", func(t *testing.T) {
		w := newWorld(t, newResource())
		duck := fixture.NewDuck("default", "test")
		duck.ResourceVersion = "999"
		ctx := reconcilers.StashOriginalResourceType(w.Context(), fixture.NewDuck("", ""))
		wantErr(t, nil, reconcilers.AddFinalizer(ctx, duck, "test-finalizer"))
		equal(t, "writes", []string{added, patched}, w.Writes())
	})
	t.Run("unstructured", func(t *testing.T) {
		w := newWorld(t, newResource())
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(fixture.GroupVersion.WithKind("Resource"))
		ctx := reconcilers.StashOriginalResourceType(w.Context(), u.DeepCopy())
		u.SetNamespace("default")
		u.SetName("test")
		u.SetResourceVersion("999")
		wantErr(t, nil, reconcilers.AddFinalizer(ctx, u, "test-finalizer"))
		equal(t, "writes", []string{added, patched}, w.Writes())
		equal(t, "finalizers", []string{"test-finalizer"}, u.GetFinalizers())
	})
	t.Run("cast", func(t *testing.T) {
		w := newWorld(t, newResource())
		// What reconcilers see is not what was loaded.
		cast := &fixture.ResourceNoStatus{ObjectMeta: newResource().ObjectMeta}
		wantErr(t, nil, reconcilers.AddFinalizer(w.Context(), cast, "test-finalizer"))
		equal(t, "writes", []string{added, patched}, w.Writes())
		equal(t, "finalizers", []string{"test-finalizer"}, cast.Finalizers)
	})
	t.Run("another current config", func(t *testing.T) {
		w, other := newWorld(t, newResource()), newWorld(t)
		ctx := reconcilers.StashConfig(w.Context(), other.Config)
		wantErr(t, nil, reconcilers.AddFinalizer(ctx, newResource(), "test-finalizer"))
		equal(t, "writes where the resource is", []string{added, patched}, w.Writes())
		equal(t, "writes elsewhere", nil, other.Writes())
	})
	t.Run("no config", func(t *testing.T) {
		err := reconcilers.AddFinalizer(context.Background(), newResource(), "test-finalizer")
		wantText(t, "resource config must exist on the context. Check that the context is from a ResourceReconciler", err)
	})
}

type withFinalizer = reconcilers.WithFinalizer[*fixture.Resource]

func TestWithFinalizer(t *testing.T) {
	const nested = "event default/test Normal Nested: called"
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	has := finalizer("test-finalizer")
	for name, tc := range map[string]struct {
		reason  string
		given   *fixture.Resource
		ready   func(context.Context, *fixture.Resource) bool
		fail    bool
		result  reconcilers.Result
		err     error
		want    reconcilers.Result
		wantErr error
		writes  []string
	}{
		"add": {
			reason: "the finalizer is there before anything is created", given: newResource(),
			result: minute, want: minute, writes: []string{added, patched, nested},
		},
		"there already": {
			reason: "nothing is to be patched", given: newResource(has),
			result: minute, want: minute, writes: []string{nested},
		},
		"add fails": {
			reason: "without the finalizer nothing may be created", given: newResource(), fail: true,
			result: minute, wantErr: errTest, writes: []string{added, failed},
		},
		"nested fails": {
			reason: "the nested outcome is returned", given: newResource(has),
			result: minute, err: errTest, want: minute, wantErr: errTest, writes: []string{nested},
		},
		"clear": {
			reason: "the finalizer goes after the clean-up", given: newResource(has, terminating),
			result: minute, want: minute, writes: []string{nested, cleared, patched},
		},
		"clear fails": {
			reason: "a finalizer that stays is a failure", given: newResource(has, terminating), fail: true,
			result: minute, wantErr: errTest, writes: []string{nested, cleared, failed},
		},
		"clean-up fails": {
			reason: "the finalizer stays until the clean-up succeeds", given: newResource(has, terminating),
			result: minute, err: errTest, want: minute, wantErr: errTest, writes: []string{nested},
		},
		"clean-up halts": {
			reason: "a halt is not success either", given: newResource(has, terminating),
			err: reconcilers.ErrHaltSubReconcilers, wantErr: reconcilers.ErrHaltSubReconcilers, writes: []string{nested},
		},
		"ready": {
			reason: "ReadyToClearFinalizer agrees", given: newResource(has, terminating),
			ready: func(context.Context, *fixture.Resource) bool { return true }, writes: []string{nested, cleared, patched},
		},
		"not ready": {
			reason: "the clean-up takes several requests", given: newResource(has, terminating),
			ready:  func(context.Context, *fixture.Resource) bool { return false },
			result: minute, want: minute, writes: []string{nested},
		},
		"never had it": {
			reason: "a resource that is being deleted gets no finalizer", given: newResource(finalizer("other"), terminating),
			writes: []string{nested},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.given)
			if tc.fail {
				w.Fail("patch", errTest)
			}
			call := func(context.Context, *fixture.Resource) (reconcilers.Result, error) {
				w.Config.Recorder.Event(tc.given, "Normal", "Nested", "called")
				return tc.result, tc.err
			}
			r := &withFinalizer{
				Finalizer: "test-finalizer", ReadyToClearFinalizer: tc.ready,
				Reconciler: &syncReconciler{SyncWithResult: call, FinalizeWithResult: call},
			}
			got, err := r.Reconcile(w.Context(), tc.given.DeepCopy())
			wantErr(t, tc.wantErr, err)
			equal(t, "result", tc.want, got)
			equal(t, "writes", tc.writes, w.Writes())
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

func TestWithFinalizer_Validate(t *testing.T) {
	recursive := validation.WithRecursive(context.Background())
	for name, tc := range map[string]struct {
		reconciler *withFinalizer
		ctx        context.Context
		want       string
	}{
		"valid":              {&withFinalizer{Finalizer: "f", Reconciler: sequence{}}, recursive, ""},
		"no finalizer":       {&withFinalizer{Reconciler: sequence{}}, recursive, `WithFinalizer "WithFinalizer" must define Finalizer`},
		"no reconciler":      {&withFinalizer{Name: "test", Finalizer: "f"}, recursive, `WithFinalizer "test" must define Reconciler`},
		"invalid":            {&withFinalizer{Finalizer: "f", Reconciler: &part{Invalid: errTest}}, recursive, `WithFinalizer "WithFinalizer" must have a valid Reconciler: failure of the test`},
		"invalid, not asked": {&withFinalizer{Finalizer: "f", Reconciler: &part{Invalid: errTest}}, context.Background(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, tc.want, tc.reconciler.Validate(tc.ctx))
		})
	}
	wantText(t, "WithFinalizer \"WithFinalizer\" must define Finalizer\nWithFinalizer \"WithFinalizer\" must define Reconciler",
		(&withFinalizer{}).SetupWithManager(context.Background(), nil, nil))
}
