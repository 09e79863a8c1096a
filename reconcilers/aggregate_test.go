// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

type (
	aggregateReconciler = reconcilers.AggregateReconciler[*corev1.ConfigMap]
	configMapSync       = reconcilers.SyncReconciler[*corev1.ConfigMap]
)

// newAggregate returns a reconciler for the ConfigMap "test" with the desired data key=value.
func newAggregate(w *world, edits ...func(*aggregateReconciler)) *aggregateReconciler {
	return changed(newAggregateIn(w.Config), changes(edits...))
}

// aggregateFactory returns an AggregateReconciler that may fetch its resource once.
func aggregateFactory(_ *testing.T, tc *rtesting.ReconcilerTestCase, c reconcilers.Config) root {
	atMostOnce(c, "get", "ConfigMap")
	return changed(newAggregateIn(c), tc.Metadata)
}

func newAggregateIn(config reconcilers.Config) *aggregateReconciler {
	return &aggregateReconciler{
		Request: testRequest,
		DesiredResource: func(_ context.Context, resource *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			resource.Data = map[string]string{"key": "value"}
			return resource, nil
		},
		AggregateObjectManager: &configMaps{MergeBeforeUpdate: mergeData},
		Config:                 config,
	}
}

// collecting returns a part of an aggregate that returns result and err.
func collecting(result reconcilers.Result, err error) *configMapSync {
	return &configMapSync{
		SyncWithResult: func(context.Context, *corev1.ConfigMap) (reconcilers.Result, error) { return result, err },
	}
}

// aggregating returns the Metadata of a case whose aggregate contains such a part.
func aggregating(result reconcilers.Result, err error) map[string]any {
	return changes(func(r *aggregateReconciler) { r.Reconciler = collecting(result, err) })
}

func noneDesired(r *aggregateReconciler) {
	r.DesiredResource = func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, nil }
}

// backOff returns a result that requests a retry with back-off and a priority.
func backOff(priority int) reconcilers.Result {
	result := requeue
	result.Priority = new(priority)
	return result
}

// onAggregate returns events about the ConfigMap that newAggregate reconciles.
func onAggregate(eventtype, reason, message string) events {
	return events{rtesting.NewEvent(wanted("test"), scheme, eventtype, reason, "%s", message)}
}

var (
	aggregateCreates = objects{wanted("test")}
	aggregateCreated = onAggregate("Normal", "Created", `Created ConfigMap "test"`)
)

func TestAggregateReconciler(t *testing.T) {
	minute := reconcilers.Result{RequeueAfter: time.Minute, Priority: new(4)}
	actual, drifted, creates := objects{newConfigMap("test", orphan)}, objects{
		newConfigMap("test", orphan, drift),
	}, aggregateCreates
	updated, failed := onAggregate("Normal", "Updated", `Updated ConfigMap "test"`),
		failing("create", "ConfigMap", errTest)
	creationFailed := onAggregate("Warning", "CreationFailed", `Failed to create ConfigMap "test": failure of the test`)
	elsewhere := reconcilers.Request{NamespacedName: client.ObjectKey{Namespace: "elsewhere", Name: "test"}}

	inAll(rtesting.ReconcilerTests{
		// A missing resource is created.
		"create": {ExpectCreates: creates, ExpectEvents: aggregateCreated},
		// A resource in the desired state is not written.
		"in sync": {
			GivenObjects: actual, ExpectWiring: &rtesting.Wiring{For: watched, AtStart: []reconcilers.Request{testRequest}},
		},
		// Drift is corrected.
		"update": {GivenObjects: drifted, ExpectUpdates: actual, ExpectEvents: updated},
		// A resource that is not desired is deleted.
		"delete": {
			GivenObjects: actual, Metadata: changes(noneDesired),
			ExpectDeletes: deletes("test"), ExpectEvents: onAggregate("Normal", "Deleted", `Deleted ConfigMap "test"`),
		},
		// No resource exists and none is desired.
		"none desired": {Metadata: changes(noneDesired)},
		// Requests for other resources are ignored.
		"another request": {Request: elsewhere, GivenObjects: drifted, WithReactors: failing("get", "ConfigMap", errTest)},
		// A resource that is being deleted is not changed.
		"terminating": {
			GivenObjects: objects{newConfigMap("test", orphan, deleting, drift)}, Metadata: aggregating(minute, errTest),
		},
		// Without the resource, nothing is done.
		"fetch fails": {
			GivenObjects: drifted, WithReactors: failing("get", "ConfigMap", errTest), Metadata: aggregating(minute, errTest),
			ShouldErr: true, Verify: failsWith(errTest),
		},
		// The result of the reconciler is returned.
		"result": {GivenObjects: actual, Metadata: aggregating(minute, nil), ExpectedResult: minute},
		// If Reconciler fails, the resource is not managed.
		"reconciler fails": {
			GivenObjects: drifted, Metadata: aggregating(minute, errTest), ShouldErr: true, Verify: failsWith(errTest, minute),
		},
		// The request is retried with back-off and keeps its priority.
		"reconciler fails quietly": {
			GivenObjects: drifted, Metadata: aggregating(minute, errQuiet), ExpectedResult: backOff(4),
		},
		// The resource is managed, the error is cleared and the result is returned.
		"reconciler halts": {
			GivenObjects: drifted, Metadata: aggregating(requeue, reconcilers.ErrHaltSubReconcilers),
			ExpectUpdates: actual, ExpectEvents: updated, ExpectedResult: requeue,
		},
		// The result is returned unchanged.
		"reconciler halts with RequeueAfter": {
			GivenObjects: actual, Metadata: aggregating(minute, reconcilers.ErrHaltSubReconcilers), ExpectedResult: minute,
		},
		// The error is returned with the result of the reconciler.
		"desired fails": {
			GivenObjects: drifted, ShouldErr: true, Verify: failsWith(errTest, minute),
			Metadata: changes(func(r *aggregateReconciler) {
				r.Reconciler = collecting(minute, nil)
				r.DesiredResource = func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, errTest }
			}),
		},
		// The error is returned with the result of the reconciler.
		"create fails": {
			Metadata: aggregating(minute, nil), WithReactors: failed, ExpectCreates: creates, ExpectEvents: creationFailed,
			ShouldErr: true, Verify: failsWith(errTest, minute),
		},
		// A halt does not hide a failure.
		"create fails after a halt": {
			Metadata: aggregating(minute, reconcilers.ErrHaltSubReconcilers), WithReactors: failed, ExpectCreates: creates,
			ExpectEvents: creationFailed,
			ShouldErr:    true, Verify: failsWith(errTest, minute),
		},
		// MergeBeforeUpdate replaces an object manager.
		"shorthand": {
			Metadata: changes(func(r *aggregateReconciler) {
				r.AggregateObjectManager, r.MergeBeforeUpdate = nil, mergeData
			}),
			GivenObjects: drifted, ExpectUpdates: actual, ExpectEvents: updated,
		},
		// The object manager can be of any type.
		"stub": {
			Metadata: changes(func(r *aggregateReconciler) {
				r.AggregateObjectManager = &rtesting.StubObjectManager[*corev1.ConfigMap]{}
			}),
			GivenObjects: drifted, ExpectUpdates: actual,
		},
		// Without DesiredResource, the reconciler changes the resource itself.
		"changes of the reconciler": {
			GivenObjects: drifted, ExpectUpdates: actual, ExpectEvents: updated,
			Metadata: changes(func(r *aggregateReconciler) {
				r.DesiredResource = nil
				r.Reconciler = &configMapSync{
					Sync: func(_ context.Context, cm *corev1.ConfigMap) error { mergeData(cm, wanted("")); return nil },
				}
			}),
		},
		// Without DesiredResource and Reconciler, nothing changes.
		"neither": {GivenObjects: drifted, Metadata: changes(func(r *aggregateReconciler) { r.DesiredResource = nil })},
	}, func(_ string, tc *rtesting.ReconcilerTestCase) {
		if tc.Request != elsewhere {
			tc.Request = testRequest
		}
	}).Run(t, scheme, aggregateFactory)
}

func TestAggregateReconciler_Halts(t *testing.T) {
	inAll(rtesting.ReconcilerTests{
		"halt":                {Metadata: stopping(reconcilers.ErrHaltSubReconcilers)},
		"halt with a context": {Metadata: stopping(fmt.Errorf("waiting: %w", reconcilers.ErrHaltSubReconcilers))},
		"quiet":               {Metadata: stopping(errQuiet), ExpectedResult: backOff(7)},
		"durable": {
			Metadata: stopping(errors.Join(errTest, reconcilers.ErrDurable)), ExpectedResult: backOff(7),
		},
		"quiet with a context": {
			Metadata: stopping(fmt.Errorf("waiting: %w", reconcilers.ErrQuiet)), ExpectedResult: backOff(7),
		},
	}, func(_ string, tc *rtesting.ReconcilerTestCase) {
		tc.Request = testRequest
		if tc.ExpectedResult == (reconcilers.Result{}) {
			tc.ExpectedResult = reconcilers.Result{RequeueAfter: time.Minute, Priority: new(7)}
			tc.ExpectCreates, tc.ExpectEvents = aggregateCreates, aggregateCreated
		}
	}).Run(t, scheme, aggregateFactory)
}

// stopping returns the Metadata of a case whose aggregate has a priority, and a part that returns err.
func stopping(err error) map[string]any {
	return changes(func(r *aggregateReconciler) {
		r.Reconciler = collecting(reconcilers.Result{RequeueAfter: time.Minute}, err)
		r.BeforeReconcile = func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
			return nil, reconcilers.Result{RequeueAfter: time.Hour, Priority: new(7)}, nil
		}
	})
}

func TestAggregateReconciler_Hooks(t *testing.T) {
	type (
		result = reconcilers.Result
		key    struct{}
	)
	minute, second := result{RequeueAfter: time.Minute}, result{RequeueAfter: time.Second, Priority: new(9)}
	before := func(res result, err error) func(*aggregateReconciler) {
		return func(r *aggregateReconciler) {
			r.BeforeReconcile = func(ctx context.Context, req reconcilers.Request) (context.Context, result, error) {
				equal(t, "request on the context", req, reconcilers.RetrieveRequest(ctx))
				return nil, res, err
			}
		}
	}
	after := func(hook func(result, error) (result, error)) func(*aggregateReconciler) {
		return func(r *aggregateReconciler) {
			r.AfterReconcile = func(_ context.Context, req reconcilers.Request, res result, err error) (result, error) {
				equal(t, "request", testRequest, req)
				return hook(res, err)
			}
		}
	}
	hooks := func(changed ...func(*aggregateReconciler)) map[string]any {
		reconciles := func(r *aggregateReconciler) { r.Reconciler = collecting(minute, nil) }
		return changes(append([]func(*aggregateReconciler){reconciles}, changed...)...)
	}
	rtesting.ReconcilerTests{
		// Results are combined.
		"before": {
			Request: testRequest, Metadata: hooks(before(second, nil)),
			ExpectCreates: aggregateCreates, ExpectEvents: aggregateCreated, ExpectedResult: second,
		},
		// An error ends the request.
		"before fails": {
			Request: testRequest, Metadata: hooks(before(second, errTest)), ShouldErr: true, Verify: failsWith(errTest, second),
		},
		// A quiet error is retried like any other error.
		"before fails quietly": {Request: testRequest, Metadata: hooks(before(second, errQuiet)), ExpectedResult: backOff(9)},
		// The result of AfterReconcile is final.
		"after": {
			Request: testRequest, Metadata: hooks(after(func(res result, err error) (result, error) {
				equal(t, "result so far", minute, res)
				wantErr(t, nil, err)
				return second, errTest
			})),
			ExpectCreates: aggregateCreates, ExpectEvents: aggregateCreated, ShouldErr: true, Verify: failsWith(errTest, second),
		},
		"after clears an error": {
			Request: testRequest, Metadata: changes(func(r *aggregateReconciler) { r.Reconciler = collecting(minute, errTest) },
				after(func(_ result, err error) (result, error) { wantErr(t, errTest, err); return second, nil })),
			ExpectedResult: second,
		},
		// A quiet error is retried like any other error.
		"after makes a quiet error": {
			Request: testRequest, Metadata: hooks(after(func(result, error) (result, error) { return second, errQuiet })),
			ExpectCreates: aggregateCreates, ExpectEvents: aggregateCreated, ExpectedResult: backOff(9),
		},
		// Nothing else is called.
		"no after when before fails": {
			Request: testRequest, Metadata: hooks(
				before(result{}, errTest), after(func(result, error) (result, error) { return second, nil }),
			),
			ShouldErr: true, Verify: failsWith(errTest),
		},
		// Nested reconcilers receive the context that BeforeReconcile returns.
		"context": {
			Request: testRequest, ExpectCreates: aggregateCreates, ExpectEvents: aggregateCreated, ExpectedResult: minute,
			Metadata: hooks(func(r *aggregateReconciler) {
				r.BeforeReconcile = func(ctx context.Context, _ reconcilers.Request) (context.Context, result, error) {
					return context.WithValue(ctx, key{}, "here"), result{}, nil
				}
				desired := r.DesiredResource
				r.DesiredResource = func(ctx context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
					equal(t, "value in DesiredResource", any("here"), ctx.Value(key{}))
					return desired(ctx, cm)
				}
				r.AfterReconcile = func(ctx context.Context, _ reconcilers.Request, res result, err error) (result, error) {
					equal(t, "value in AfterReconcile", any("here"), ctx.Value(key{}))
					return res, err
				}
			}),
		},
	}.Run(t, scheme, aggregateFactory)
}

// A halt has the same effect below each root: the RequeueAfter of the user is kept.
func TestAggregateReconciler_HaltedIsRetriedAfterRequeueAfter(t *testing.T) {
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	for name, tc := range map[string]struct{ given, want reconcilers.Result }{
		"RequeueAfter":    {given: minute, want: minute},
		"no RequeueAfter": {want: requeue},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			aggregate := newAggregate(w, func(r *aggregateReconciler) {
				r.Reconciler = collecting(tc.given, reconcilers.ErrDurable)
			})
			got, err := aggregate.ReconcileManaged(context.Background(), testRequest)
			wantErr(t, nil, err)
			equal(t, "result", tc.want, got)
			equal(t, "writes", nil, w.Writes())
		})
	}
}

func TestAggregateReconciler_Context(t *testing.T) {
	calls := 0
	tc := rtesting.ReconcilerTestCase{
		Request: testRequest, GivenObjects: objects{
			newConfigMap("test", orphan),
		}, AdditionalConfigs: map[string]rtesting.ExpectConfig{"other": {}},
	}
	tc.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) root {
		check := func(ctx context.Context, cm *corev1.ConfigMap) {
			calls++
			equal(t, "name", "test", cm.Name)
			equal(t, "request", testRequest, reconcilers.RetrieveRequest(ctx))
			_, isType := reconcilers.RetrieveResourceType(ctx).(*corev1.ConfigMap)
			_, isOriginal := reconcilers.RetrieveOriginalResourceType(ctx).(*corev1.ConfigMap)
			equal(t, "types", []bool{true, true}, []bool{isType, isOriginal})
			if other := reconcilers.RetrieveAdditionalConfigs(ctx)["other"]; reconcilers.RetrieveOriginalConfigOrDie(ctx) != c ||
				other.Client == nil || other == c {
				t.Error("a config is missing")
			}
		}
		r := newAggregateIn(c)
		r.Reconciler = &configMapSync{Sync: func(ctx context.Context, cm *corev1.ConfigMap) error {
			check(ctx, cm)
			if reconcilers.RetrieveConfigOrDie(ctx) != c {
				t.Error("the config is not that of the reconciler")
			}
			reconcilers.StashValue(ctx, "collected", "value")
			return nil
		}}
		r.DesiredResource = func(ctx context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			check(ctx, cm)
			equal(t, "collected value", any("value"), reconcilers.RetrieveValue(ctx, "collected"))
			config := reconcilers.RetrieveConfigOrDie(ctx)
			// The config is the same, except for the tracker.
			equal(t, "tracker is the same", false, config.Tracker == c.Tracker)
			config.Tracker = c.Tracker
			equal(t, "config is the same otherwise", true, config == c)
			return cm, nil
		}
		return ctrlreconcile.Func(func(ctx context.Context, req reconcilers.Request) (reconcilers.Result, error) {
			ctx = reconcilers.WithStash(ctx)
			_, err := r.Reconcile(ctx, req)
			wantErr(t, nil, err)
			equal(t, "the outer stash has a value", false, reconcilers.HasValue(ctx, "collected"))
			return r.Reconcile(ctx, req)
		})
	})
	equal(t, "calls", 4, calls)
}

func TestAggregateReconciler_DesiredTracksNothing(t *testing.T) {
	look := func(ctx context.Context) error {
		config := reconcilers.RetrieveConfigOrDie(ctx)
		if err := config.Tracker.TrackObject(newConfigMap("direct"), newConfigMap("test")); err != nil {
			return err
		}
		observers, err := config.Tracker.GetObservers(newConfigMap("untracked"))
		equal(t, "observers is nil", false, observers == nil)
		wantErr(t, nil, err)
		return config.TrackAndGet(ctx, types.NamespacedName{Namespace: "default", Name: "source"}, &corev1.ConfigMap{})
	}
	given := objects{newConfigMap("test", orphan), newConfigMap("source")}
	rtesting.ReconcilerTests{
		"DesiredResource": {
			Request: testRequest, GivenObjects: given,
			Metadata: changes(func(r *aggregateReconciler) {
				r.DesiredResource = func(
					ctx context.Context, cm *corev1.ConfigMap,
				) (*corev1.ConfigMap, error) {
					return cm, look(ctx)
				}
			}),
		},
		"Reconciler": {
			Request: testRequest, GivenObjects: given,
			Metadata: changes(func(r *aggregateReconciler) {
				r.Reconciler = &configMapSync{Sync: func(ctx context.Context, _ *corev1.ConfigMap) error { return look(ctx) }}
			}),
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.CreateTrackRequest("", "ConfigMap", "default", "direct").By("default", "test"),
				rtesting.CreateTrackRequest("", "ConfigMap", "default", "source").By("default", "test"),
			},
		},
	}.Run(t, scheme, func(_ *testing.T, tc *rtesting.ReconcilerTestCase, c reconcilers.Config) root {
		return changed(newAggregateIn(c), tc.Metadata)
	})
}

func TestAggregateReconciler_Objects(t *testing.T) {
	given := objects{newConfigMap("test", orphan)}
	labeled := newConfigMap("test", orphan, func(cm *corev1.ConfigMap) {
		cm.Labels, cm.Finalizers = map[string]string{"changed": "in-memory"}, []string{"test.example.com/it"}
	})
	var reconciled *corev1.ConfigMap
	rtesting.ReconcilerTests{
		// A client may change an object for which it returns NotFound.
		"does not exist": {
			Request: testRequest, GivenObjects: given,
			WithClientBuilder: func(builder *fake.ClientBuilder) *fake.ClientBuilder {
				return builder.WithInterceptorFuncs(interceptor.Funcs{Get: func(
					ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
				) error {
					wantErr(t, nil, c.Get(ctx, key, obj, opts...))
					return errNotFound
				}})
			},
			Metadata: changes(func(r *aggregateReconciler) {
				r.DesiredResource = func(_ context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
					blank := &corev1.ConfigMap{}
					blank.Namespace, blank.Name = "default", "test"
					equal(t, "resource that does not exist", blank, cm)
					cm.Data = map[string]string{"changed": "by DesiredResource"}
					return nil, nil
				}
			}),
		},
		"is not shared": {
			Request: testRequest, GivenObjects: given,
			Metadata: changes(func(r *aggregateReconciler) {
				r.Reconciler = &configMapSync{
					Sync: func(_ context.Context, cm *corev1.ConfigMap) error { reconciled = cm; return nil },
				}
				r.DesiredResource = func(_ context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
					equal(t, "DesiredResource and the reconciler share an object", false, cm == reconciled)
					return cm, nil
				}
			}),
		},
		"keeps the changes of the reconciler": {
			Request: testRequest, GivenObjects: given,
			Metadata: changes(func(r *aggregateReconciler) {
				r.Reconciler = &configMapSync{Sync: func(ctx context.Context, cm *corev1.ConfigMap) error {
					cm.Labels = map[string]string{"changed": "in-memory"}
					return reconcilers.AddFinalizer(ctx, cm, "test.example.com/it")
				}}
			}),
			ExpectPatches: patches{{
				Kind: "ConfigMap", Namespace: "default", Name: "test", PatchType: types.MergePatchType,
				Patch: []byte(`{"metadata":{"finalizers":["test.example.com/it"],"resourceVersion":"999"}}`),
			}},
			ExpectUpdates: objects{labeled},
			ExpectEvents: append(onAggregate("Normal", "FinalizerPatched", `Patched finalizer "test.example.com/it"`),
				onAggregate("Normal", "Updated", `Updated ConfigMap "test"`)...),
		},
	}.Run(t, scheme, aggregateFactory)
}

func TestAggregateReconciler_FetchFailuresAreLogged(t *testing.T) {
	forbidden := apierrs.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "test", errTest)
	for name, tc := range map[string]struct {
		err  error
		want []string
		res  reconcilers.Result
	}{
		"not quiet": {forbidden, []string{"unable to fetch resource"}, reconcilers.Result{}},
		"quiet":     {errQuiet, nil, requeue},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).Fail("get ConfigMap", tc.err)
			log, lines := newLog(0)
			got, err := newAggregate(w).Reconcile(withLog(context.Background(), log), testRequest)
			equal(t, "failed", tc.res != requeue, err != nil)
			equal(t, "result", tc.res, got)
			equal(t, "log", tc.want, lines.messages())
		})
	}
}

// While its kind is not served, a request does nothing.
func TestAggregateReconciler_KindThatIsNotServed(t *testing.T) {
	unserved := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, SearchedVersions: []string{"v1"}}
	for name, tc := range map[string]struct {
		whileServed bool
		want        error
		log         []string
	}{
		"WhileServed": {whileServed: true},
		"default":     {want: unserved, log: []string{"unable to fetch resource"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).Fail("get ConfigMap", unserved)
			log, lines := newLog(0)
			aggregate := newAggregate(w, func(r *aggregateReconciler) { r.WhileServed = tc.whileServed })
			got, err := aggregate.Reconcile(withLog(context.Background(), log), testRequest)
			wantErr(t, tc.want, err)
			equal(t, "result", reconcilers.Result{}, got)
			equal(t, "log", tc.log, lines.messages())
			equal(t, "writes", nil, w.Writes())
		})
	}
}
