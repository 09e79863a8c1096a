// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

func TestAggregateReconciler_Validate(t *testing.T) {
	const defaultName = `AggregateReconciler "ConfigMapAggregateReconciler" `
	harmonize := func(_, _ *corev1.ConfigMap) {}
	for name, tc := range map[string]struct {
		reconciler     *aggregateReconciler
		problems, deep []string
	}{
		"valid": {
			reconciler: &aggregateReconciler{
				Request: testRequest, AggregateObjectManager: &configMaps{MergeBeforeUpdate: mergeData},
			},
		},
		"invalid object manager": {
			// Only setup reports this: users validate reconcilers with an incomplete object manager.
			reconciler: &aggregateReconciler{Request: testRequest, AggregateObjectManager: &configMaps{}},
		},
		"empty": {
			&aggregateReconciler{}, []string{
				defaultName + `must define Request`, defaultName + `must define AggregateObjectManager`,
			}, nil,
		},
		"named": {
			&aggregateReconciler{
				Name: "n", AggregateObjectManager: &configMaps{},
			}, []string{`AggregateReconciler "n" must define Request`}, nil,
		},
		"named after its kind": {
			&aggregateReconciler{Type: func() *corev1.ConfigMap {
				cm := &corev1.ConfigMap{}
				cm.Kind = "Theme"
				return cm
			}(), AggregateObjectManager: &configMaps{}},
			[]string{`AggregateReconciler "ThemeAggregateReconciler" must define Request`},
			nil,
		},
		"no object manager": {
			&aggregateReconciler{Request: testRequest}, []string{defaultName + `must define AggregateObjectManager`}, nil,
		},
		"shorthand": {
			reconciler: &aggregateReconciler{
				Request: testRequest, MergeBeforeUpdate: mergeData, HarmonizeImmutableFields: harmonize,
			},
		},
		"shorthand and object manager": {
			&aggregateReconciler{
				Request: testRequest, AggregateObjectManager: &configMaps{}, MergeBeforeUpdate: mergeData,
				HarmonizeImmutableFields: harmonize, Sanitize: func(*corev1.ConfigMap) any { return nil },
			},
			[]string{
				defaultName + `may not define both AggregateObjectManager and MergeBeforeUpdate`,
				defaultName + `may not define both AggregateObjectManager and HarmonizeImmutableFields`,
				defaultName + `may not define both AggregateObjectManager and Sanitize`,
			},
			nil,
		},
		"finalizer": {
			&aggregateReconciler{
				Request:                testRequest,
				AggregateObjectManager: &configMaps{Finalizer: "test.example.com/it", MergeBeforeUpdate: mergeData},
			},
			[]string{defaultName + `must not define a Finalizer on AggregateObjectManager, nothing would clear it`},
			nil,
		},
		"invalid nested reconciler": {
			&aggregateReconciler{
				Request: testRequest, AggregateObjectManager: &configMaps{MergeBeforeUpdate: mergeData},
				Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{&configMapSync{Name: "x"}},
			},
			nil,
			[]string{
				defaultName +
					`must have a valid Reconciler: Sequence must have a valid Sequence[0]: SyncReconciler "x" must implement Sync or SyncWithResult`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			log, lines := newLog(1)
			tc.reconciler.Config = w.Config
			ctx := withLog(context.Background(), log)
			wantText(t, first(tc.problems), tc.reconciler.Validate(ctx))
			deep := slices.Concat(tc.problems, tc.deep)
			wantText(t, first(deep), tc.reconciler.Validate(validation.WithRecursive(ctx)))
			equal(t, "log lines", nil, lines.messages())

			mgr := newManager(t, w, newEventCache(w.Scheme))
			if len(deep) > 0 {
				for i := range deep {
					if strings.HasSuffix(deep[i], "must define AggregateObjectManager") {
						deep[i] += adviceToMerge
					}
				}
				wantText(t, strings.Join(deep, "\n"), tc.reconciler.SetupWithManager(context.Background(), mgr))
				tc.reconciler.Config = reconcilers.Config{}
				contains(t, tc.reconciler.SetupWithManager(context.Background(), mgr).Error(), `" must define Config`)
			}
		})
	}
	t.Run("an interface needs a type", func(t *testing.T) {
		r := &reconcilers.AggregateReconciler[client.Object]{
			Name: "n", Request: testRequest, MergeBeforeUpdate: func(_, _ client.Object) {},
		}
		wantText(t, `AggregateReconciler "n" must define Type`, r.Validate(context.Background()))
		r = &reconcilers.AggregateReconciler[client.Object]{
			Type: &corev1.ConfigMap{}, Request: testRequest, MergeBeforeUpdate: func(_, _ client.Object) {},
		}
		wantText(t, "", r.Validate(context.Background()))
	})
	t.Run("nested reconcilers find the config", func(t *testing.T) {
		w := newWorld(t)
		found := false
		r := newAggregate(w, func(r *aggregateReconciler) {
			r.Reconciler = &reconcilers.Advice[*corev1.ConfigMap]{Reconciler: validating{validate: func(
				ctx context.Context,
			) error {
				found = reconcilers.RetrieveConfigOrDie(ctx) == w.Config &&
					reconcilers.RetrieveOriginalConfigOrDie(ctx) == w.Config &&
					reconcilers.RetrieveResourceType(ctx) != nil && reconcilers.RetrieveOriginalResourceType(ctx) != nil
				return nil
			}}}
		})
		wantErr(t, nil, r.Validate(validation.WithRecursive(context.Background())))
		equal(t, "all found", true, found)
	})
}

// validating is a subreconciler whose Validate method calls a function.
type validating struct {
	*configMapSync
	validate func(ctx context.Context) error
}

func (v validating) Validate(ctx context.Context) error { return v.validate(ctx) }

func TestAggregateReconciler_SetupOrder(t *testing.T) {
	w := newWorld(t)
	mgr := newManager(t, w, newEventCache(w.Scheme))
	config := configFor(w, mgr)
	const own, below, manager = "own", "below", "manager"
	for _, failing := range []string{"", own, below, manager} {
		s := &setups{t: t, config: config, failing: failing}
		r := newAggregate(w, func(r *aggregateReconciler) {
			r.Config, r.Setup = config, s.hook(own)
			r.Reconciler = &configMapSync{
				Setup: s.hook(below), Sync: func(context.Context, *corev1.ConfigMap) error { return nil },
			}
			r.AggregateObjectManager = &settingUp{setup: s.hook(manager)}
		})
		controller, err := r.SetupWithManagerYieldingController(context.Background(), mgr)
		if failing == "" {
			wantErr(t, nil, err)
			equal(t, "has a controller", true, controller != nil)
			equal(t, "order", []string{own, below, manager}, s.order)
			continue
		}
		wantErr(t, errTest, err)
		equal(t, "has a controller", false, controller != nil)
		equal(t, "last setup", failing, s.order[len(s.order)-1])
	}
}

// settingUp is an object manager that only implements setup.
type settingUp struct {
	configMaps
	setup func(context.Context, reconcilers.Manager, *reconcilers.Builder) error
}

func (m *settingUp) SetupWithManager(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	return m.setup(ctx, mgr, bldr)
}

// requested makes an aggregate record the requests that it receives.
func requested(calls requests) func(*aggregateReconciler) {
	return func(r *aggregateReconciler) {
		r.Reconciler = &configMapSync{Sync: func(ctx context.Context, _ *corev1.ConfigMap) error {
			calls <- reconcilers.RetrieveRequest(ctx)
			return nil
		}}
	}
}

// reconciles returns the number of reconciles of a controller.
func reconciles(t *testing.T, controller string) float64 {
	t.Helper()
	return apitest.Counted(t, "controller_runtime_reconcile_total", map[string]string{"controller": controller})
}

func TestAggregateReconciler_RunsAtStartAndOnItsOwnEvents(t *testing.T) {
	name := unique("own-events")
	w := newWorld(t)
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	calls := make(requests, 10)
	r := newAggregate(w, requested(calls), func(r *aggregateReconciler) { r.Name, r.Config = name, configFor(w, mgr) })
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	start(t, mgr)
	equal(t, "request", testRequest, calls.next(t, "the start, although the resource does not exist"))
	// The queue merges a pending request with the next one, so wait for the effect.
	deadline(t, "the resource exists", func() bool { return stored(w, wanted("test")) != nil })

	before := reconciles(t, name)
	for _, other := range []string{"other", "another", "yet-another"} {
		events.changed(newConfigMap(other))
	}
	events.changed(newConfigMap("test"))
	equal(t, "request", testRequest, calls.next(t, "a watch event of the resource"))
	deadline(t, "the reconcile counts", func() bool { return reconciles(t, name) > before })
	if total := reconciles(t, name); total > 2 {
		t.Errorf("the controller was called %v times, events of other resources must not trigger it", total)
	}
}

func TestAggregateReconciler_SetupForOptionsReplaceItsPredicate(t *testing.T) {
	name := unique("predicate")
	w := newWorld(t)
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	calls, asked := make(requests, 10), make(chan string, 10)
	r := newAggregate(w, requested(calls), func(r *aggregateReconciler) {
		r.Name, r.Config = name, configFor(w, mgr)
		r.SetupForOptions = []builder.ForOption{builder.WithPredicates(predicate.NewPredicateFuncs(func(
			obj client.Object,
		) bool {
			asked <- obj.GetName()
			return true
		}))}
	})
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	start(t, mgr)
	calls.next(t, "the start")
	events.changed(newConfigMap("other"))
	equal(t, "object in the predicate", "other", <-asked)
	// The request passes the predicate, but the reconciler ignores it.
	deadline(t, "the controller is called", func() bool { return reconciles(t, name) >= 2 })
	equal(t, "requests", 0, len(calls))
	equal(t, "reads of other", 0, w.Count("get ConfigMap default/other"))
}

func TestAggregateReconciler_Unstructured(t *testing.T) {
	w := newWorld(t)
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	r := &reconcilers.AggregateReconciler[*unstructured.Unstructured]{
		Type: kind, Request: testRequest, Config: configFor(w, mgr),
		DesiredResource: func(_ context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return u, unstructured.SetNestedField(u.Object, "value", "data", "key")
		},
		MergeBeforeUpdate: func(current, desired *unstructured.Unstructured) {
			current.Object["data"] = desired.Object["data"]
		},
	}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	start(t, mgr)
	deadline(t, "the resource exists", func() bool {
		cm := stored(w, wanted("test"))
		return cm != nil && cm.Data["key"] == "value"
	})
	equal(t, "default name", "ConfigMapAggregateReconciler", r.Name)
}
