// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// rootWith returns a root with one child reconciler, which is named like the root.
func rootWith(w *world, name string, edits ...func(*childReconciler)) *resourceReconciler {
	return &resourceReconciler{
		Name: name, Reconciler: newChildReconciler(w, append(edits, func(r *childReconciler) { r.Name = name })...),
	}
}

// singleWith is rootWith for a root that reconciles one resource.
func singleWith(w *world, name, resource string) *reconcilers.AggregateReconciler[*fixture.Resource] {
	single := &reconcilers.AggregateReconciler[*fixture.Resource]{
		Name: name, MergeBeforeUpdate: func(current, desired *fixture.Resource) { current.Spec = desired.Spec },
		Reconciler: newChildReconciler(w, func(r *childReconciler) { r.Name = name }),
	}
	single.Request.Namespace, single.Request.Name = "default", resource
	return single
}

// setUpRoots sets up roots, each with a config of its own, and returns the error of the last one.
func setUpRoots(t *testing.T, w *world, mgr ctrl.Manager, roots ...any) (err error) {
	t.Helper()
	for _, root := range roots {
		wantErr(t, nil, err)
		switch root := root.(type) {
		case *resourceReconciler:
			root.Config = configFor(w, mgr)
			err = root.SetupWithManager(context.Background(), mgr)
		case *reconcilers.AggregateReconciler[*fixture.Resource]:
			root.Config = configFor(w, mgr)
			err = root.SetupWithManager(context.Background(), mgr)
		}
	}
	return err
}

// Two roots of one kind that cannot identify their children would manage the same child alternately.
func TestSetup_RejectsUnidentifiedChildrenOfTwoRoots(t *testing.T) {
	w := newWorld(t)
	const lacking = ` must implement OurChild or ListOptions: another reconciler, `
	const of = `, manages children of kind ConfigMap of the same resources too, and without them each reconciler also ` +
		`manages the children of the other`
	const a, b = `ChildReconciler "a" of ResourceReconciler "a"`, `ChildReconciler "b" of ResourceReconciler "b"`
	skipping := func(r *resourceReconciler) *resourceReconciler {
		r.SkipResource = func(context.Context, *fixture.Resource) bool { return false }
		return r
	}
	with := func(reconciler reconcilers.SubReconciler[*fixture.Resource]) *resourceReconciler {
		return &resourceReconciler{Name: "b", Reconciler: reconciler}
	}
	elsewhere := newManager(t, w, newEventCache(w.Scheme))
	for name, tc := range map[string]struct {
		roots []any
		want  string
	}{
		"two without":        {[]any{rootWith(w, "a"), rootWith(w, "b")}, b + lacking + a + of},
		"the first without":  {[]any{rootWith(w, "a"), rootWith(w, "b", identifiedByName)}, a + lacking + b + of},
		"the second without": {[]any{rootWith(w, "a", withListOptions), rootWith(w, "b")}, b + lacking + a + of},
		"a root of one resource": {
			[]any{rootWith(w, "a"), singleWith(w, "b", "test")},
			`ChildReconciler "b" of AggregateReconciler "b"` + lacking + a + of,
		},
		"one chooses resources": {[]any{skipping(rootWith(w, "a")), rootWith(w, "b")}, b + lacking + a + of},
		"both with":             {[]any{rootWith(w, "a", identifiedByName), rootWith(w, "b", withListOptions)}, ""},
		"both choose resources": {[]any{skipping(rootWith(w, "a")), skipping(rootWith(w, "b"))}, ""},
		"other resources":       {[]any{singleWith(w, "a", "one"), singleWith(w, "b", "other")}, ""},
		"other kinds":           {[]any{rootWith(w, "a"), with(newSecretReconciler())}, ""},
		"no owner references":   {[]any{rootWith(w, "a"), rootWith(w, "b", withoutOwner)}, ""},
		"another cluster": {[]any{rootWith(w, "a"), with(&reconcilers.WithConfig[*fixture.Resource]{
			Config: func(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) {
				return c.WithCluster(elsewhere), nil
			},
			Reconciler: newChildReconciler(w),
		})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := setUpRoots(t, w, newManager(t, w, newEventCache(w.Scheme)), tc.roots...)
			if tc.want == "" {
				wantErr(t, nil, err)
				return
			}
			if err == nil {
				t.Fatal("setup returned no error")
			}
			equal(t, "error", tc.want, err.Error())
		})
	}
}

// TestSetup_ForgetsRootsThatFailed tests that the children of a root that could not be built are free for others.
func TestSetup_ForgetsRootsThatFailed(t *testing.T) {
	w := newWorld(t)
	mgr := newManager(t, w, newEventCache(w.Scheme))
	unique := func(r *resourceReconciler) *resourceReconciler {
		r.Setup = func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.WithOptions(controller.Options{SkipNameValidation: new(false)})
			return nil
		}
		return r
	}
	const name = "a name that is taken"
	wantErr(t, nil, setUpRoots(t, w, mgr, unique(&resourceReconciler{Name: name, Reconciler: sequence{}})))
	if err := setUpRoots(t, w, mgr, unique(rootWith(w, name))); err == nil {
		t.Fatal("the second controller of a name was built")
	}
	wantErr(t, nil, setUpRoots(t, w, mgr, rootWith(w, "a")))
	if err := setUpRoots(t, w, mgr, rootWith(w, "b")); err == nil {
		t.Fatal("the children of the first root were taken")
	}
}

// TestSetup_KeepsNoManager tests that the claims of roots do not keep their manager in memory.
func TestSetup_KeepsNoManager(t *testing.T) {
	collected := make(chan bool)
	func() {
		w := newWorld(t)
		informers := newEventCache(w.Scheme)
		mgr := newManager(t, w, informers)
		wantErr(t, nil, setUpRoots(t, w, mgr, rootWith(w, "a")))
		runtime.AddCleanup(informers, func(collected chan bool) { close(collected) }, collected)
	}()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		runtime.GC()
		select {
		case <-collected:
			return
		default:
		}
	}
	t.Fatal("the cache of the manager was not collected")
}
