// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

// registry is created by the setup of a notifier.
type registry struct{ missing []string }

// notifier is a custom sub reconciler that cannot be validated before its setup.
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

// embedder is a custom sub reconciler that embeds a reconciler of this package.
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

// panics is a custom sub reconciler that can never be validated.
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
