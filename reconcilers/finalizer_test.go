// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
	"trueup.dev/validation"
)

const (
	added   = `patch Resource default/test application/merge-patch+json {"metadata":{"finalizers":["test-finalizer"],"resourceVersion":"999"}}`
	patched = `event default/test Normal FinalizerPatched: Patched finalizer "test-finalizer"`
)

// changeInMemory changes a resource before its finalizers are patched.
func changeInMemory(r *fixture.Resource) {
	r.Spec.Fields = map[string]string{"changed": "in memory"}
	r.Status.Fields = map[string]string{"changed": "in memory"}
	r.CreationTimestamp = metav1.Time{}
}

func TestFinalizers(t *testing.T) {
	const f = "test-finalizer"
	given := func(names ...string) *fixture.Resource {
		return newResource(func(r *fixture.Resource) { r.Finalizers = names })
	}
	tests := subReconcilerTests{}
	for name, tc := range map[string]struct {
		change    func(context.Context, client.Object, string) error
		finalizer string
		given     *fixture.Resource
		patches   patches
		fail      error
		want      *fixture.Resource
		events    events
	}{
		"add": {
			reconcilers.AddFinalizer, f, given(), patches{finalizers(f)}, nil, refinalized(f), events{finalizerPatched},
		},
		"add again": {reconcilers.AddFinalizer, f, given(f), nil, nil, given(f), nil},
		"add none":  {reconcilers.AddFinalizer, "", given(), nil, nil, given(), nil},
		"add fails": {
			reconcilers.AddFinalizer, f, given(), patches{finalizers(f)}, errTest, given(), events{finalizerFailed},
		},
		"add quietly": {reconcilers.AddFinalizer, f, given(), patches{finalizers(f)}, errQuiet, given(), nil},
		"clear": {
			reconcilers.ClearFinalizer, f, given(f), patches{finalizers()}, nil, refinalized(), events{finalizerPatched},
		},
		"clear again": {reconcilers.ClearFinalizer, f, given(), nil, nil, given(), nil},
		"clear none":  {reconcilers.ClearFinalizer, "", given(""), nil, nil, given(""), nil},
		"clear fails": {
			reconcilers.ClearFinalizer, f, given(f), patches{finalizers()}, errTest, given(f), events{finalizerFailed},
		},
		"add one more": {
			reconcilers.AddFinalizer, f, given("other"),
			patches{finalizers("other", f)},
			nil, refinalized("other", f),
			events{finalizerPatched},
		},
	} {
		test := outcome(&syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
			changeInMemory(r)
			err := tc.change(ctx, r, tc.finalizer)
			stored := &fixture.Resource{}
			wantErr(t, nil, reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, testRequest.NamespacedName, stored))
			equal(t, "stored finalizers", stored.Finalizers, r.Finalizers)
			equal(t, "stored resource version", stored.ResourceVersion, r.ResourceVersion)
			return err
		}}, reconcilers.Result{}, tc.fail)
		if tc.fail != nil {
			test.WithReactors = failing("patch", "Resource", tc.fail)
		}
		test.Resource, test.ExpectPatches, test.ExpectEvents = tc.given, tc.patches, tc.events
		// Only finalizers, resource version and generation are copied from the server.
		test.ExpectResource = rtesting.With(tc.want, changeInMemory)
		tests[name] = test
	}
	tests.Run(t, scheme, fromCase)
}

// refinalized returns the resource after a patch of its finalizers.
func refinalized(names ...string) *fixture.Resource {
	return newResource(func(r *fixture.Resource) { r.Finalizers, r.ResourceVersion = names, "1000" })
}

// adding returns a subreconciler that adds the finalizer to its resource after a change in memory.
func adding[T client.Object](change func(T)) *reconcilers.SyncReconciler[T] {
	return &reconcilers.SyncReconciler[T]{Sync: func(ctx context.Context, resource T) error {
		change(resource)
		return reconcilers.AddFinalizer(ctx, resource, "test-finalizer")
	}}
}

func TestFinalizers_Metadata(t *testing.T) {
	generation := func(generation int64) func(*fixture.Resource) {
		return func(r *fixture.Resource) { r.Generation = generation }
	}
	outdate := func(r *fixture.Resource) { r.ResourceVersion = "12" }
	given := func(r subReconciler) map[string]any { return map[string]any{"reconciler": r} }
	outdated := finalizers("test-finalizer")
	outdated.Patch = bytes.ReplaceAll(outdated.Patch, []byte("999"), []byte("12"))
	subReconcilerTests{
		"the generation is copied back": {
			Metadata: given(adding(generation(4))),
			Resource: newResource(generation(5)), ExpectResource: rtesting.With(refinalized("test-finalizer"), generation(5)),
			ExpectPatches: patches{finalizers("test-finalizer")}, ExpectEvents: events{finalizerPatched},
		},
		"the resource was cast": {
			Metadata: given(&reconcilers.CastResource[*fixture.Resource, *fixture.ResourceNoStatus]{
				Reconciler: adding(func(*fixture.ResourceNoStatus) {}),
			}),
			Resource: newResource(), ExpectResource: refinalized("test-finalizer"),
			ExpectPatches: patches{finalizers("test-finalizer")}, ExpectEvents: events{finalizerPatched},
		},
		"the resource has changed since it was read": {
			Metadata: given(adding(outdate)), Resource: newResource(), ExpectResource: newResource(outdate),
			ExpectPatches: patches{outdated},
			ExpectEvents: events{warning("FinalizerPatchFailed",
				`Failed to patch finalizer "test-finalizer": Operation cannot be fulfilled on resources.fixture.trueup.dev "test": object was modified`)},
			ShouldErr: true,
			Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				equal(t, "conflict", true, apierrs.IsConflict(err))
			},
		},
	}.Run(t, scheme, fromCase)
}

func TestFinalizers_OtherTypes(t *testing.T) {
	t.Run("duck", func(t *testing.T) { addsFinalizer(t, fixture.NewDuck("default", "test")) })
	t.Run("unstructured", func(t *testing.T) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(fixture.GroupVersion.WithKind("Resource"))
		u.SetNamespace("default")
		u.SetName("test")
		addsFinalizer(t, u)
	})
	t.Run("no config", func(t *testing.T) {
		err := reconcilers.AddFinalizer(context.Background(), newResource(), "test-finalizer")
		wantText(t, "resource config must exist on the context. Check that the context is from a ResourceReconciler", err)
	})
}

// addsFinalizer tests AddFinalizer with another type of resource.
func addsFinalizer[T client.Object](t *testing.T, given T) {
	want := given.DeepCopyObject().(T)
	want.SetFinalizers([]string{"test-finalizer"})
	want.SetResourceVersion("1000")
	tc := rtesting.SubReconcilerTestCase[T]{
		Resource: given, ExpectResource: want, ExpectPatches: patches{
			finalizers("test-finalizer"),
		}, ExpectEvents: events{finalizerPatched},
	}
	tc.Run(t, scheme, func(
		*testing.T, *rtesting.SubReconcilerTestCase[T], reconcilers.Config,
	) reconcilers.SubReconciler[T] {
		return adding(func(T) {})
	})
}

// In most reconciles the finalizers are already correct.
func TestFinalizers_AllocateNothingWhenNothingChanges(t *testing.T) {
	ctx := newWorld(t).Context()
	held, free := newResource(finalizer("test-finalizer")), newResource(finalizer("other"))
	for name, change := range map[string]func() error{
		"add":     func() error { return reconcilers.AddFinalizer(ctx, held, "test-finalizer") },
		"clear":   func() error { return reconcilers.ClearFinalizer(ctx, free, "test-finalizer") },
		"replace": func() error { return reconcilers.ReplaceFinalizer(ctx, held, "former", "test-finalizer") },
	} {
		t.Run(name, func(t *testing.T) {
			wantErr(t, nil, change())
			if allocated := testing.AllocsPerRun(100, func() { _ = change() }); allocated > 0 {
				t.Errorf("allocates %v times", allocated)
			}
		})
	}
}

type withFinalizer = reconcilers.WithFinalizer[*fixture.Resource]

func TestWithFinalizer(t *testing.T) {
	const f = "test-finalizer"
	minute, none, nested := reconcilers.Result{RequeueAfter: time.Minute}, reconcilers.Result{}, noted("nested")[0]
	living, deleted, halt := newResource(finalizer(f)), newResource(finalizer(f), terminating),
		reconcilers.ErrHaltSubReconcilers
	of := func(result reconcilers.Result, err error, ready ...bool) *withFinalizer {
		r := &withFinalizer{Finalizer: f, Reconciler: noting("nested", result, err)}
		for _, ready := range ready {
			r.ReadyToClearFinalizer = func(context.Context, *fixture.Resource) bool { return ready }
		}
		return r
	}
	on := func(given *fixture.Resource, tc subReconcilerCase, events ...rtesting.Event) subReconcilerCase {
		tc.Resource, tc.ExpectEvents = given, events
		return tc
	}
	patching := func(tc subReconcilerCase, left ...string) subReconcilerCase {
		tc.ExpectPatches = patches{finalizers(left...)}
		if tc.ShouldErr {
			tc.WithReactors = failing("patch", "Resource", errTest)
			return tc
		}
		return making(tc, func(r *fixture.Resource) { r.Finalizers, r.ResourceVersion = left, "1000" })
	}
	subReconcilerTests{
		// The finalizer is added before the nested reconciler runs. If that fails, the nested reconciler does not run.
		"add":       patching(on(newResource(), outcome(of(minute, nil), minute, nil), finalizerPatched, nested), f),
		"add fails": patching(on(newResource(), outcome(of(minute, nil), none, errTest), finalizerFailed), f),
		// The finalizer is already set. The outcome of the nested reconciler is returned.
		"there already": on(living, outcome(of(minute, nil), minute, nil), nested),
		"nested fails":  on(living, outcome(of(minute, errTest), minute, errTest), nested),
		// The finalizer is removed after the cleanup. A failure to remove it is returned.
		"clear":       patching(on(deleted, outcome(of(minute, nil), minute, nil), nested, finalizerPatched)),
		"clear fails": patching(on(deleted, outcome(of(minute, nil), none, errTest), nested, finalizerFailed)),
		// The finalizer is kept until the cleanup succeeds. A halt is not a success.
		"clean-up fails": on(deleted, outcome(of(minute, errTest), minute, errTest), nested),
		"clean-up halts": on(deleted, outcome(of(none, halt), none, halt), nested),
		// The cleanup may take several requests.
		"ready":     patching(on(deleted, outcome(of(none, nil, true), none, nil), nested, finalizerPatched)),
		"not ready": on(deleted, outcome(of(minute, nil, false), minute, nil), nested),
		// No finalizer is added to a resource that is being deleted.
		"never had it": on(newResource(finalizer("other"), terminating), outcome(of(none, nil), none, nil), nested),
	}.Run(t, scheme, fromCase)
}

func TestWithFinalizer_Validate(t *testing.T) {
	recursive := validation.WithRecursive(context.Background())
	for name, tc := range map[string]struct {
		reconciler *withFinalizer
		ctx        context.Context
		want       string
	}{
		"valid": {&withFinalizer{Finalizer: "f", Reconciler: sequence{}}, recursive, ""},
		"no finalizer": {
			&withFinalizer{Reconciler: sequence{}}, recursive, `WithFinalizer "WithFinalizer" must define Finalizer`,
		},
		"no reconciler": {
			&withFinalizer{Name: "test", Finalizer: "f"}, recursive, `WithFinalizer "test" must define Reconciler`,
		},
		"invalid": {
			&withFinalizer{Finalizer: "f", Reconciler: &part{Invalid: errTest}}, recursive,
			`WithFinalizer "WithFinalizer" must have a valid Reconciler: failure of the test`,
		},
		"not recursive": {&withFinalizer{Finalizer: "f", Reconciler: &part{Invalid: errTest}}, context.Background(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, tc.want, tc.reconciler.Validate(tc.ctx))
		})
	}
	wantText(t,
		"WithFinalizer \"WithFinalizer\" must define Finalizer\nWithFinalizer \"WithFinalizer\" must define Reconciler",
		(&withFinalizer{}).SetupWithManager(context.Background(), nil, nil))
}
