// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

func TestAdvice(t *testing.T) {
	type (
		result = reconcilers.Result
		key    struct{}
	)
	minute, second, hour := result{
		RequeueAfter: time.Minute,
	}, result{RequeueAfter: time.Second}, result{RequeueAfter: time.Hour}
	works, fails := noting("reconcile", minute, nil), noting("reconcile", minute, errTest)
	before := func(res result, err error) func(context.Context, *fixture.Resource) (context.Context, result, error) {
		return func(ctx context.Context, r *fixture.Resource) (context.Context, result, error) {
			note(ctx, r, "before")
			return nil, res, err
		}
	}
	around := func(times int) func(context.Context, *fixture.Resource, subReconciler) (result, error) {
		return func(ctx context.Context, r *fixture.Resource, sub subReconciler) (res result, err error) {
			note(ctx, r, "around")
			for range times {
				res, err = sub.Reconcile(ctx, r)
			}
			return res, err
		}
	}
	after := func(ctx context.Context, r *fixture.Resource, res result, err error) (result, error) {
		note(ctx, r, "after %s", res.RequeueAfter)
		return res, err
	}
	returns := func(res result, err error) func(context.Context, *fixture.Resource, result, error) (result, error) {
		return func(context.Context, *fixture.Resource, result, error) (result, error) { return res, err }
	}
	halt := reconcilers.ErrHaltSubReconcilers
	subReconcilerTests{
		// Without functions, Advice returns the result and error of the reconciler and keeps its changes.
		"reconciler only":    outcome(&advice{Reconciler: works}, minute, nil, "reconcile"),
		"reconciler fails":   outcome(&advice{Reconciler: fails}, minute, errTest, "reconcile"),
		"reconciler changes": making(outcome(&advice{Reconciler: setField(minute, nil)}, minute, nil), ran),
		// The functions run in order. After receives the combined result of Before and Reconciler.
		"all": outcome(
			&advice{Before: before(second, nil), Around: around(1), After: after, Reconciler: works}, second, nil,
			"before", "around", "reconcile", "after 1s",
		),
		// The shorter requeue is used.
		"before asks for less": outcome(
			&advice{Before: before(hour, nil), Reconciler: works}, minute, nil, "before", "reconcile",
		),
		// If Before fails, nothing else is called and the result of Before is returned. A halt is returned like any
		// other error.
		"before fails": outcome(
			&advice{
				Before: before(second, errTest), Around: around(1), After: after, Reconciler: works,
			}, second, errTest, "before",
		),
		"before halts": outcome(
			&advice{Before: before(second, halt), After: after, Reconciler: works}, second, halt, "before",
		),
		// Around may skip the reconciler or call it several times.
		"around skips": outcome(
			&advice{Before: before(second, nil), Around: around(0), Reconciler: works}, second, nil, "before", "around",
		),
		"around repeats": outcome(
			&advice{Around: around(3), Reconciler: works}, minute, nil, "around", "reconcile", "reconcile", "reconcile",
		),
		// After is also called after a failure, and its outcome is final.
		"after sees the error": outcome(
			&advice{After: after, Reconciler: fails}, minute, errTest, "reconcile", "after 1m0s",
		),
		"after clears the error": outcome(&advice{After: returns(hour, nil), Reconciler: fails}, hour, nil, "reconcile"),
		"after makes an error": outcome(
			&advice{After: returns(result{}, errTest), Reconciler: works}, result{}, errTest, "reconcile",
		),
		// The functions that follow receive the context of Before.
		"before replaces the context": outcome(&advice{
			Before: func(ctx context.Context, _ *fixture.Resource) (context.Context, result, error) {
				return context.WithValue(ctx, key{}, "seen by"), result{}, nil
			},
			Around: func(ctx context.Context, r *fixture.Resource, sub subReconciler) (result, error) {
				note(ctx, r, "%s around", ctx.Value(key{}))
				return sub.Reconcile(ctx, r)
			},
			Reconciler: &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
				note(ctx, r, "%s reconcile", ctx.Value(key{}))
				return nil
			}},
			After: func(ctx context.Context, r *fixture.Resource, res result, err error) (result, error) {
				note(ctx, r, "%s after", ctx.Value(key{}))
				return res, err
			},
		}, result{}, nil, "seen by around", "seen by reconcile", "seen by after"),
	}.Run(t, scheme, fromCase)
}

func TestAdvice_SetsUpItsReconcilerWithoutSetup(t *testing.T) {
	configMap := []rtesting.Watch{{Object: &corev1.ConfigMap{}}}
	rtesting.RecordWiring(t, scheme, func(ctx context.Context, mgr reconcilers.Manager, config reconcilers.Config) error {
		r := &resourceReconciler{Config: config, Reconciler: always{&advice{Reconciler: newChildReconciler(nil)}}}
		return r.SetupWithManager(ctx, mgr)
	}).Assert(t, &rtesting.Wiring{
		For: []rtesting.Watch{{Object: &fixture.Resource{}}}, Owns: configMap, Tracks: configMap,
		Indexes: []rtesting.Index{{Object: &corev1.ConfigMap{}, Field: reconcilers.OwnerIndexField}},
	})
}

// castTo returns a cast to a subreconciler that calls a function.
func castTo[CT client.Object](
	sync func(ctx context.Context, resource CT) (reconcilers.Result, error),
) *reconcilers.CastResource[*fixture.Resource, CT] {
	return &reconcilers.CastResource[*fixture.Resource, CT]{
		Reconciler: &reconcilers.SyncReconciler[CT]{SyncWithResult: sync, FinalizeWithResult: sync},
	}
}

func withFields(r *fixture.Resource) {
	r.Labels = map[string]string{"app": "test"}
	r.Spec.Fields = map[string]string{"color": "blue"}
	r.Status.Fields = map[string]string{"old": "value"}
}

// hold is a subreconciler that stores the resource in a variable.
func hold(variable **fixture.Resource) *syncReconciler {
	return &syncReconciler{Sync: func(_ context.Context, r *fixture.Resource) error { *variable = r; return nil }}
}

func TestCastResource(t *testing.T) {
	type result = reconcilers.Result
	minute, halt := result{RequeueAfter: time.Minute, Priority: new(2)}, reconcilers.ErrHaltSubReconcilers
	of := func(change func(duck *fixture.Duck), err error) *castToDuck {
		return castTo(func(ctx context.Context, duck *fixture.Duck) (result, error) {
			equal(t, "spec", map[string]string{"color": "blue"}, duck.Spec.Fields)
			equal(t, "kind", fixture.GroupVersion.WithKind("Resource"), duck.GroupVersionKind())
			if current, ok := reconcilers.RetrieveResourceType(ctx).(*fixture.Duck); ok {
				equal(t, "kind of the current type", fixture.GroupVersion.WithKind("Resource"), current.GroupVersionKind())
			} else {
				t.Error("the current type is not the CastType")
			}
			if _, ok := reconcilers.RetrieveOriginalResourceType(ctx).(*fixture.Resource); !ok {
				t.Error("the original type has changed")
			}
			change(duck)
			return minute, err
		})
	}
	with := func(tc subReconcilerCase, changes ...func(*fixture.Resource)) subReconcilerCase {
		tc.Resource = newResource(withFields)
		return making(tc, changes...)
	}
	addField := func(duck *fixture.Duck) { duck.Status.Fields["new"] = "value" }
	fieldAdded := func(r *fixture.Resource) { r.Status.Fields["new"] = "value" }
	var held *fixture.Resource
	subReconcilerTests{
		// Without changes by the subreconciler, the resource stays unchanged.
		"nothing":                with(outcome(of(func(*fixture.Duck) {}, nil), minute, nil)),
		"error without a change": with(outcome(of(func(*fixture.Duck) {}, errTest), minute, errTest)),
		// All changes of the subreconciler are applied, including removed fields.
		"status": with(outcome(of(func(duck *fixture.Duck) {
			duck.Status.Fields = map[string]string{"new": "value"}
			duck.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
		}, nil), minute, nil), func(r *fixture.Resource) {
			r.Status.Fields = map[string]string{"new": "value"}
			r.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
		}),
		"spec and metadata": with(outcome(of(func(duck *fixture.Duck) {
			duck.Labels["app"], duck.Spec.Fields["size"] = "changed", "big"
		}, nil), minute, nil), func(r *fixture.Resource) {
			r.Labels["app"], r.Spec.Fields["size"] = "changed", "big"
		}),
		"removal": with(outcome(of(func(duck *fixture.Duck) {
			duck.Labels, duck.Status.Fields = nil, nil
			delete(duck.Spec.Fields, "color")
		}, nil), minute, nil), func(r *fixture.Resource) {
			r.Labels, r.Status.Fields, r.Spec.Fields = nil, nil, nil
		}),
		// An error does not revert changes. A halt is returned as a halt.
		"error": with(outcome(of(addField, errTest), minute, errTest), fieldAdded),
		"halt":  with(outcome(of(addField, halt), minute, halt), fieldAdded),
		// The resource does not have these fields. Some of them are encoded although they are empty.
		"unknown fields are dropped": with(outcome(castTo(func(
			_ context.Context, deployment *appsv1.Deployment,
		) (result, error) {
			deployment.Labels["app"] = "changed"
			deployment.Status.ObservedGeneration = 7
			deployment.Spec.Paused = true
			deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "test"}}
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
			deployment.Spec.Template.Labels = map[string]string{"app": "test"}
			deployment.Status.Replicas = 3
			return result{}, nil
		}), result{}, nil), func(r *fixture.Resource) {
			r.Labels["app"], r.Status.ObservedGeneration = "changed", 7
		}),
		// A subreconciler has a pointer to the resource itself, and the generation has changed since the cast.
		"the resource changes meanwhile": with(outcome(sequence{hold(&held), castTo(func(
			_ context.Context, duck *fixture.Duck,
		) (result, error) {
			held.Generation = 2
			held.Spec.Fields["else"] = "where"
			addField(duck)
			return result{}, nil
		})}, result{}, nil), fieldAdded, func(r *fixture.Resource) {
			r.Generation = 2
			r.Spec.Fields["else"] = "where"
		}),
		"to an interface": with(outcome(sequence{hold(&held), castTo(func(
			ctx context.Context, obj client.Object,
		) (result, error) {
			if obj != client.Object(held) {
				t.Error("the object is a copy")
			}
			if _, ok := reconcilers.RetrieveResourceType(ctx).(*fixture.Resource); !ok {
				t.Error("the current type has changed")
			}
			obj.SetLabels(nil)
			return minute, errTest
		})}, minute, errTest), func(r *fixture.Resource) { r.Labels = nil }),
	}.Run(t, scheme, fromCase)
}

func TestCastResource_Failures(t *testing.T) {
	type result = reconcilers.Result
	minute := result{RequeueAfter: time.Minute}
	nothing := func(*fixture.Resource) {}
	unexpected := func(*fixture.Resource) { t.Error("the subreconciler was called") }
	toMarshal, toUnmarshal := func(r *fixture.Resource) { r.Spec.ErrOnMarshal = true }, func(r *fixture.Resource) {
		r.Spec.ErrOnUnmarshal = true
	}
	tests := subReconcilerTests{}
	for name, tc := range map[string]struct {
		before, change func(*fixture.Resource)
		err            error
		result         result
		want           []error
		left           func(*fixture.Resource)
	}{
		"marshal fails":       {toMarshal, unexpected, nil, result{}, []error{fixture.ErrMarshal}, toMarshal},
		"unmarshal fails":     {toUnmarshal, unexpected, nil, result{}, []error{fixture.ErrUnmarshal}, toUnmarshal},
		"marshal fails after": {nothing, toMarshal, nil, minute, []error{fixture.ErrMarshal}, nothing},
		// Fields that were decoded before the error are changed.
		"unmarshal fails after": {nothing, toUnmarshal, nil, minute, []error{fixture.ErrUnmarshal}, toUnmarshal},
		"two errors":            {nothing, toMarshal, errTest, minute, []error{errTest, fixture.ErrMarshal}, nothing},
	} {
		cast := castTo(func(_ context.Context, cast *fixture.Resource) (result, error) {
			tc.change(cast)
			return minute, tc.err
		})
		before := &syncReconciler{Sync: func(_ context.Context, r *fixture.Resource) error { tc.before(r); return nil }}
		test := making(outcome(sequence{before, cast}, tc.result, tc.want[0]), tc.left)
		test.Verify = func(t *testing.T, got result, err error) {
			equal(t, "result", tc.result, got)
			for _, want := range tc.want {
				wantErr(t, want, err)
				contains(t, err.Error(), want.Error())
			}
		}
		tests[name] = test
	}
	special := outcome(
		&reconcilers.CastResource[*fixture.Resource, special]{Name: "Special", Reconciler: reconcilers.Sequence[special]{}},
		result{}, errTest,
	)
	special.Verify = failsWithText("*fixture.Resource does not implement the CastType of Special")
	tests["to an interface it does not have"] = special
	tests.Run(t, scheme, fromCase)
}

func TestCastResource_BelowARoot(t *testing.T) {
	theme := newSecret("theme")
	cast := reconciling(&castToDuck{Reconciler: reconcilers.Sequence[*fixture.Duck]{
		&duckSync{Sync: func(_ context.Context, duck *fixture.Duck) error {
			duck.Status.Fields = map[string]string{"before": "the finalizer"}
			return nil
		}},
		&reconcilers.WithFinalizer[*fixture.Duck]{Finalizer: "test-finalizer", Reconciler: &duckSync{
			Sync: func(ctx context.Context, duck *fixture.Duck) error {
				equal(t, "finalizers", []string{"test-finalizer"}, duck.Finalizers)
				duck.Status.Fields["after"] = "the finalizer"
				return reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, client.ObjectKeyFromObject(theme), &corev1.Secret{})
			},
		}},
	}})
	rtesting.ReconcilerTests{
		"not deleted": {
			Metadata: cast, Request: testRequest, GivenObjects: objects{
				newResource(settled), theme,
			}, StatusSubResourceTypes: hasStatus,
			ExpectPatches: patches{finalizers("test-finalizer")},
			ExpectTracks:  []rtesting.TrackRequest{rtesting.NewTrackRequest(theme, newResource(), scheme)},
			ExpectStatusUpdates: objects{newResource(settled, func(r *fixture.Resource) {
				r.Status.Fields = map[string]string{"before": "the finalizer", "after": "the finalizer"}
			})},
			ExpectEvents: append(events{finalizerPatched}, statusUpdated...),
		},
		"deleted": {
			Metadata: cast, Request: testRequest, GivenObjects: objects{
				newResource(settled, finalizer("test-finalizer"), terminating),
			},
			ExpectPatches: patches{finalizers()}, ExpectEvents: events{finalizerPatched},
		},
	}.Run(t, scheme, resourceFactory)
}

// special is an interface that no resource implements.
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
		"from the original scheme": {
			func(w *world) context.Context { return reconcilers.StashConfig(w.Context(), reconcilers.Config{}) },
			func(*fixture.Resource) {}, "Resource",
		},
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
			return &castToDuck{
				Reconciler: &duckSync{Setup: setup, Sync: func(context.Context, *fixture.Duck) error { return nil }},
			}
		}, &fixture.Duck{}},
		"interface": {func(setup func(context.Context, reconcilers.Manager, *reconcilers.Builder) error) subReconciler {
			return &reconcilers.CastResource[*fixture.Resource, client.Object]{
				Reconciler: &reconcilers.SyncReconciler[client.Object]{
					Setup: setup, Sync: func(context.Context, client.Object) error { return nil },
				},
			}
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

// Does a cast change an error? Not if the reconciler below has also changed the resource.
func TestCastResource_IsTheErrorTheSame(t *testing.T) {
	conflict := apierrs.NewConflict(schema.GroupResource{Resource: "secrets"}, "a", errTest)
	for name, change := range map[string]func(*fixture.Duck){
		"unchanged": func(*fixture.Duck) {},
		"changed":   func(duck *fixture.Duck) { duck.Labels = map[string]string{"a": "b"} },
	} {
		t.Run(name, func(t *testing.T) {
			r := &castToDuck{Reconciler: &duckSync{Sync: func(_ context.Context, duck *fixture.Duck) error {
				change(duck)
				return conflict
			}}}
			_, err := r.Reconcile(newWorld(t).Context(), newResource())
			if err != error(conflict) { //nolint:errorlint // identity
				t.Errorf("want the same error, got %T", err)
			}
		})
	}
	// With an error of the cast itself, the types of both are found.
	r := &reconcilers.CastResource[*fixture.Resource, *fixture.Resource]{Reconciler: &syncReconciler{
		Sync: func(_ context.Context, r *fixture.Resource) error {
			r.Spec.ErrOnMarshal = true
			return conflict
		},
	}}
	_, err := r.Reconcile(newWorld(t).Context(), newResource())
	equal(t, "is a conflict", true, apierrs.IsConflict(err))
	wantErr(t, fixture.ErrMarshal, err)
}

func TestWithConfig(t *testing.T) {
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	with := func(below subReconciler) *withConfig {
		return &withConfig{Reconciler: below, Config: func(
			ctx context.Context, current reconcilers.Config,
		) (reconcilers.Config, error) {
			if current != reconcilers.RetrieveConfigOrDie(ctx) || current != reconcilers.RetrieveOriginalConfigOrDie(ctx) {
				t.Error("the current config is a different one")
			}
			return reconcilers.RetrieveAdditionalConfigs(ctx)["there"], nil
		}}
	}
	there := func(there rtesting.ExpectConfig) map[string]rtesting.ExpectConfig {
		return map[string]rtesting.ExpectConfig{"there": there}
	}
	// The finalizer is set on the resource, with its config. Reconcilers after WithConfig use the config of the
	// resource again.
	below := outcome(sequence{
		with(sequence{noting("below", minute, nil), &syncReconciler{Sync: func(
			ctx context.Context, r *fixture.Resource,
		) error {
			return reconcilers.AddFinalizer(ctx, r, "test-finalizer")
		}}}),
		noting("after", reconcilers.Result{}, nil),
	}, minute, nil)
	below.ExpectResource, below.ExpectPatches = refinalized("test-finalizer"), patches{finalizers("test-finalizer")}
	below.ExpectEvents = append(events{finalizerPatched}, noted("after")...)
	below.AdditionalConfigs = there(rtesting.ExpectConfig{ExpectEvents: noted("below")})
	// The Config function is called for each request.
	below.AdditionalReconciles = []subReconcilerCase{below}

	// Children are in the other cluster, even if the cluster of the resource has objects of the same name.
	child := func() subReconcilerCase {
		return outcome(with(newChildReconciler(nil, withoutOwner, func(r *childReconciler) {
			r.ChildObjectManager = &configMaps{MergeBeforeUpdate: mergeData, TrackDesired: true}
			r.ReflectChildStatusOnParent = func(ctx context.Context, r *fixture.Resource, child *corev1.ConfigMap, err error) {
				note(ctx, r, "reflect %s, %v", child.Name, err)
			}
		})), reconcilers.Result{}, nil)
	}
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(wanted("child"), newResource(), scheme)}
	created, updated := child(), child()
	created.GivenObjects = objects{newConfigMap("child", orphan)}
	created.ExpectEvents = events{createdChild}
	created.AdditionalConfigs = there(rtesting.ExpectConfig{
		ExpectCreates: objects{wanted("child")}, ExpectTracks: tracks, ExpectEvents: noted("reflect child, <nil>"),
	})
	created.ExpectWiring = &rtesting.Wiring{Tracks: []rtesting.Watch{{Object: &corev1.ConfigMap{}, Cluster: "there"}}}
	updated.ExpectEvents = events{updatedChild}
	updated.AdditionalConfigs = there(rtesting.ExpectConfig{
		GivenObjects:  objects{wanted("child", "key", "drift")},
		ExpectUpdates: objects{wanted("child")}, ExpectTracks: tracks, ExpectEvents: noted("reflect child, <nil>"),
	})
	subReconcilerTests{"below": below, "child created": created, "child updated": updated}.Run(t, scheme, fromCase)
}

func TestWithConfig_Fails(t *testing.T) {
	failing := &withConfig{
		Config:     func(_ context.Context, config reconcilers.Config) (reconcilers.Config, error) { return config, errTest },
		Reconciler: never(t),
	}
	subReconcilerTests{
		"config":     outcome(failing, reconcilers.Result{}, errTest),
		"reconciler": outcome(&withConfig{Config: sameConfig, Reconciler: returning(requeue, errTest)}, requeue, errTest),
	}.Run(t, scheme, fromCase)
	wantErr(t, errTest, failing.SetupWithManager(newWorld(t).Context(), nil, nil))

	const missing = "config must exist on the context. Check that the context is from a ResourceReconciler or WithConfig"
	_, err := (&withConfig{Config: sameConfig, Reconciler: never(t)}).Reconcile(context.Background(), newResource())
	wantText(t, missing, err)
	wantText(
		t, missing, (&withConfig{Config: sameConfig, Reconciler: never(t)}).SetupWithManager(context.Background(), nil, nil),
	)
}
