// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

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
	labelled := newConfigMap("test", orphan, func(cm *corev1.ConfigMap) {
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
			ExpectUpdates: objects{labelled},
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
