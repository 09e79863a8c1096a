// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

// registry is created by the setup of a notifier.
type registry struct{ missing []string }

// notifier is a custom subreconciler that cannot be validated before its setup.
type notifier struct {
	given    registry
	registry *registry
	below    subReconciler
}

func (n *notifier) SetupWithManager(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	n.registry = &n.given
	if n.below == nil {
		return nil
	}
	return n.below.SetupWithManager(ctx, mgr, bldr)
}

func (n *notifier) Validate(ctx context.Context) error {
	if len(n.registry.missing) > 0 { // panics before setup
		return errors.New("missing: " + strings.Join(n.registry.missing, ", "))
	}
	if v, ok := n.below.(validation.Validator); ok && validation.IsRecursive(ctx) {
		return v.Validate(ctx)
	}
	return nil
}

func (n *notifier) Reconcile(context.Context, *fixture.Resource) (reconcilers.Result, error) {
	return reconcilers.Result{}, nil
}

// embedder is a custom subreconciler that embeds a reconciler of this package.
type embedder struct {
	*syncReconciler
	registry *registry
}

func (e *embedder) SetupWithManager(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	e.registry = &registry{}
	return e.syncReconciler.SetupWithManager(ctx, mgr, bldr)
}

func (e *embedder) Validate(ctx context.Context) error {
	if len(e.registry.missing) > 0 { // panics before setup
		return errTest
	}
	return e.syncReconciler.Validate(ctx)
}

// keeper is a custom object manager.
type keeper struct {
	configMaps
	registry *registry
}

func (k *keeper) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	k.registry = &registry{}
	return nil
}

func (k *keeper) Validate(context.Context) error {
	if len(k.registry.missing) > 0 { // panics before setup
		return errTest
	}
	return nil
}

// panics is a custom subreconciler that can never be validated.
type panics struct{ notifier }

func (*panics) Validate(context.Context) error { panic("not yet") }

func TestSetup_ValidatesCustomReconcilersAfterTheirSetup(t *testing.T) {
	w := newWorld(t)
	const below = `ResourceReconciler "root" must have a valid Reconciler: `
	broken := func() *notifier { return &notifier{given: registry{missing: []string{"token"}}} }
	for name, tc := range map[string]struct {
		reconciler subReconciler
		want       []string
	}{
		"alone": {reconciler: &notifier{}},
		"below other reconcilers": {reconciler: sequence{
			always{&notifier{}},
			&ifThen{If: isTrue, Then: &notifier{}, Else: &notifier{}}, &while{Condition: isTrue, Reconciler: &notifier{}},
			&forEach{Items: items("a"), Reconciler: &notifier{}}, &tryCatch{Try: &notifier{}, Finally: &notifier{}},
			&withConfig{Config: sameConfig, Reconciler: &notifier{}}, &suppress{Reconciler: &notifier{}},
			&reconcilers.WithFinalizer[*fixture.Resource]{Finalizer: "test/finalizer", Reconciler: &notifier{}},
			&reconcilers.Advice[*fixture.Resource]{Reconciler: &notifier{}},
			&reconcilers.CastResource[*fixture.Resource, *fixture.Resource]{Reconciler: &notifier{}},
		}},
		"embeds a reconciler of this package": {reconciler: sequence{&embedder{syncReconciler: nothing()}}},
		"object manager": {
			reconciler: newChildReconciler(w, func(r *childReconciler) { r.ChildObjectManager = &keeper{} }),
		},
		"object manager of a set": {
			reconciler: newChildSetReconciler(w, func(r *childSetReconciler) { r.ChildObjectManager = &keeper{} }),
		},
		"between reconcilers of this package": {reconciler: sequence{&notifier{below: sequence{nothing()}}}},
		"never set up":                        {reconciler: &overrideSetup{Reconciler: sequence{&notifier{}, &panics{}}}},
		"invalid":                             {reconciler: broken(), want: []string{below + "missing: token"}},
		"invalid in several places": {
			reconciler: sequence{broken(), &ifThen{If: isTrue, Then: broken()}, &notifier{}},
			want: []string{
				below + "Sequence must have a valid Sequence[0]: missing: token",
				below + `Sequence must have a valid Sequence[1]: IfThen "IfThen" must have a valid Then: missing: token`,
			},
		},
		"invalid, as is a reconciler of this package": {
			reconciler: sequence{broken(), &syncReconciler{Name: "empty"}},
			want: []string{
				below + `Sequence must have a valid Sequence[1]: SyncReconciler "empty" must implement Sync or SyncWithResult`,
			},
		},
		"contains an invalid reconciler of this package": {
			reconciler: sequence{&notifier{below: &syncReconciler{Name: "empty"}}},
			want:       []string{`SyncReconciler "empty" must implement Sync or SyncWithResult`},
		},
		"contains an invalid reconciler of this package, never set up": {
			reconciler: &overrideSetup{Name: "skipped", Reconciler: &syncReconciler{Name: "empty"}},
			want: []string{
				below +
					`OverrideSetup "skipped" must have a valid Reconciler: SyncReconciler "empty" must implement Sync or SyncWithResult`,
			},
		},
		"panics": {
			reconciler: sequence{&panics{}},
			want: []string{
				below +
					"Sequence must have a valid Sequence[0]: method Validate of *reconcilers_test.panics panicked after its set-up: " +
					"not yet",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			mgr := newManager(t, w, newEventCache(w.Scheme))
			r := &resourceReconciler{Name: "root", Config: configFor(w, mgr), Reconciler: tc.reconciler}
			wantText(t, strings.Join(tc.want, "\n"), r.SetupWithManager(context.Background(), mgr))
		})
	}
	t.Run("aggregate", func(t *testing.T) {
		mgr := newManager(t, w, newEventCache(w.Scheme))
		r := &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
			Name: "root", Config: configFor(w, mgr), Request: testRequest, MergeBeforeUpdate: mergeData,
			Reconciler: &reconcilers.CastResource[*corev1.ConfigMap, *fixture.Resource]{Reconciler: broken()},
		}
		wantText(t,
			`AggregateReconciler "root" must have a valid Reconciler: CastResource "ResourceCastResource" must have a valid Reconciler: missing: token`,
			r.SetupWithManager(context.Background(), mgr))
	})
	t.Run("webhook, which sets up nothing", func(t *testing.T) {
		adapter := &reconcilers.AdmissionWebhookAdapter[*fixture.Resource]{
			Reconciler: sequence{&notifier{}}, Config: w.Config,
		}
		_, err := adapter.BuildWithContext(context.Background())
		wantErr(t, nil, err)
	})
}

func TestSetup_ValidatesCustomReconcilersOnRequest(t *testing.T) {
	w := newWorld(t)
	recursive := validation.WithRecursive(context.Background())
	ready := func(missing ...string) *notifier {
		n := &notifier{given: registry{missing: missing}}
		wantErr(t, nil, n.SetupWithManager(recursive, nil, nil))
		return n
	}
	const below = `ResourceReconciler "root" must have a valid Reconciler: `
	for name, tc := range map[string]struct {
		reconciler subReconciler
		want       string
	}{
		"alone":        {ready("token"), below + "missing: token"},
		"below a list": {sequence{ready("token")}, below + "Sequence must have a valid Sequence[0]: missing: token"},
		"never set up": {
			&overrideSetup{Name: "skipped", Reconciler: ready("token")},
			below + `OverrideSetup "skipped" must have a valid Reconciler: missing: token`,
		},
		"contains a reconciler of this package": {
			&notifier{registry: &registry{}, below: &syncReconciler{Name: "empty"}},
			below + `SyncReconciler "empty" must implement Sync or SyncWithResult`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			mgr := newManager(t, w, newEventCache(w.Scheme))
			r := &resourceReconciler{Name: "root", Config: configFor(w, mgr), Reconciler: tc.reconciler}
			wantText(t, tc.want, r.Validate(recursive))
			wantText(t, tc.want, r.SetupWithManager(recursive, mgr))
			wantText(t, "", r.Validate(context.Background()))
		})
	}
}

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
	name := "a name that is taken " + string(uuid.NewUUID()) // for -count: a process knows all names
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
