// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

func TestAggregateReconciler_Context(t *testing.T) {
	w, other := newWorld(t, newConfigMap("test", orphan)), newWorld(t)
	calls := 0
	check := func(ctx context.Context, cm *corev1.ConfigMap) {
		calls++
		equal(t, "name", "test", cm.Name)
		equal(t, "request", testRequest, reconcilers.RetrieveRequest(ctx))
		_, isType := reconcilers.RetrieveResourceType(ctx).(*corev1.ConfigMap)
		_, isOriginal := reconcilers.RetrieveOriginalResourceType(ctx).(*corev1.ConfigMap)
		equal(t, "types", []bool{true, true}, []bool{isType, isOriginal})
		if reconcilers.RetrieveOriginalConfigOrDie(ctx) != w.Config || reconcilers.RetrieveAdditionalConfigs(ctx)["other"] != other.Config {
			t.Error("a config is missing")
		}
	}
	r := newAggregate(w, func(r *aggregateReconciler) {
		r.Reconciler = &configMapSync{Sync: func(ctx context.Context, cm *corev1.ConfigMap) error {
			check(ctx, cm)
			if reconcilers.RetrieveConfigOrDie(ctx) != w.Config {
				t.Error("the config is another one")
			}
			reconcilers.StashValue(ctx, "collected", "value")
			return nil
		}}
		r.DesiredResource = func(ctx context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			check(ctx, cm)
			equal(t, "collected value", any("value"), reconcilers.RetrieveValue(ctx, "collected"))
			config := reconcilers.RetrieveConfigOrDie(ctx)
			// All of the config is there, but for the tracker.
			equal(t, "tracker is the same", false, config.Tracker == w.Config.Tracker)
			config.Tracker = w.Config.Tracker
			equal(t, "config is the same otherwise", true, config == w.Config)
			return cm, nil
		}
	})
	ctx := reconcilers.StashAdditionalConfigs(reconcilers.WithStash(context.Background()), map[string]reconcilers.Config{"other": other.Config})
	for range 2 {
		_, err := r.Reconcile(ctx, testRequest)
		wantErr(t, nil, err)
	}
	equal(t, "calls", 4, calls)
	equal(t, "the stash around it has a value", false, reconcilers.HasValue(ctx, "collected"))
}

func TestAggregateReconciler_DesiredTracksNothing(t *testing.T) {
	w := newWorld(t, newConfigMap("test", orphan), newConfigMap("source"))
	look := func(ctx context.Context) error {
		config := reconcilers.RetrieveConfigOrDie(ctx)
		if err := config.Tracker.TrackObject(newConfigMap("direct"), newConfigMap("test")); err != nil {
			return err
		}
		observers, err := config.Tracker.GetObservers(newConfigMap("nobody"))
		equal(t, "observers are nil", false, observers == nil)
		wantErr(t, nil, err)
		return config.TrackAndGet(ctx, client.ObjectKey{Namespace: "default", Name: "source"}, &corev1.ConfigMap{})
	}
	_, err := newAggregate(w, func(r *aggregateReconciler) {
		r.DesiredResource = func(ctx context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) { return cm, look(ctx) }
	}).Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	equal(t, "trace", []string{"get ConfigMap default/test", "get ConfigMap default/source"}, w.Trace())

	_, err = newAggregate(w, func(r *aggregateReconciler) {
		r.Reconciler = &configMapSync{Sync: func(ctx context.Context, _ *corev1.ConfigMap) error { return look(ctx) }}
	}).Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	equal(t, "tracks of the reconciler", 2, w.Count("track ConfigMap"))
}

func TestAggregateReconciler_Objects(t *testing.T) {
	w := newWorld(t, newConfigMap("test", orphan))
	// A client may fill in what it then says not to have found.
	w.Unseen = func(client.Object) bool { return true }
	var seen *corev1.ConfigMap
	r := newAggregate(w, func(r *aggregateReconciler) {
		r.DesiredResource = func(_ context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			seen = cm.DeepCopy()
			cm.Data = map[string]string{"changed": "by DesiredResource"}
			return nil, nil
		}
	})
	_, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	blank := &corev1.ConfigMap{}
	blank.Namespace, blank.Name = "default", "test"
	equal(t, "resource that does not exist", blank, seen)

	w.Unseen = nil
	var reconciled *corev1.ConfigMap
	_, err = newAggregate(w, func(r *aggregateReconciler) {
		r.Reconciler = &configMapSync{Sync: func(_ context.Context, cm *corev1.ConfigMap) error { reconciled = cm; return nil }}
		r.DesiredResource = func(_ context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			equal(t, "DesiredResource and the reconciler share an object", false, cm == reconciled)
			return cm, nil
		}
	}).Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)

	r = newAggregate(w, func(r *aggregateReconciler) {
		r.Reconciler = &configMapSync{Sync: func(ctx context.Context, cm *corev1.ConfigMap) error {
			cm.Labels = map[string]string{"changed": "in-memory"}
			return reconcilers.AddFinalizer(ctx, cm, "test.example.com/it")
		}}
		r.AggregateObjectManager = &configMaps{MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Labels, current.Data = desired.Labels, desired.Data
		}}
	})
	_, err = r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	after := stored(w, wanted("test"))
	equal(t, "labels", map[string]string{"changed": "in-memory"}, after.Labels)
	equal(t, "finalizers", []string{"test.example.com/it"}, after.Finalizers)
}

func TestAggregateReconciler_FetchFailuresAreLogged(t *testing.T) {
	forbidden := apierrs.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "test", errTest)
	for name, tc := range map[string]struct {
		err  error
		want []string
		res  reconcilers.Result
	}{
		"loud":  {forbidden, []string{"unable to fetch resource"}, reconcilers.Result{}},
		"quiet": {errQuiet, nil, requeue},
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
