// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

func TestWithConfig(t *testing.T) {
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	here, there := newWorld(t, newResource(settled)), newWorld(t)
	resolved := 0
	var below subReconciler
	r := &resourceReconciler{Config: here.Config, Reconciler: sequence{
		&withConfig{
			Config: func(ctx context.Context, current reconcilers.Config) (reconcilers.Config, error) {
				resolved++
				if current != here.Config || reconcilers.RetrieveConfigOrDie(ctx) != here.Config {
					t.Error("the current config is another one")
				}
				return there.Config, nil
			},
			Reconciler: &advice{Around: func(ctx context.Context, r *fixture.Resource, _ subReconciler) (reconcilers.Result, error) {
				return below.Reconcile(ctx, r)
			}, Reconciler: nothing()},
		},
		&syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
			if reconcilers.RetrieveConfigOrDie(ctx) != here.Config {
				t.Error("the config leaks to what follows")
			}
			return nil
		}},
	}}

	below = &syncReconciler{SyncWithResult: func(ctx context.Context, r *fixture.Resource) (reconcilers.Result, error) {
		if reconcilers.RetrieveConfigOrDie(ctx) != there.Config {
			t.Error("the config below is not the new one")
		}
		if reconcilers.RetrieveOriginalConfigOrDie(ctx) != here.Config {
			t.Error("the original config has changed")
		}
		wantErr(t, nil, reconcilers.AddFinalizer(ctx, r, "test-finalizer"))
		return minute, nil
	}}
	for range 2 {
		got, err := r.Reconcile(context.Background(), testRequest)
		wantErr(t, nil, err)
		equal(t, "result", minute, got)
	}
	equal(t, "times the config was asked for", 2, resolved)
	equal(t, "finalizers here", 1, here.Count("event default/test Normal FinalizerPatched"))
	equal(t, "calls there", nil, there.Trace())

	t.Run("children are in the other cluster", func(t *testing.T) {
		here.Trace()
		below = newChildReconciler(here, withoutOwner, func(r *childReconciler) {
			r.ChildObjectManager = &configMaps{MergeBeforeUpdate: mergeData, TrackDesired: true}
		})
		_, err := r.Reconcile(context.Background(), testRequest)
		wantErr(t, nil, err)
		equal(t, "here", []string{"get Resource default/test", childCreated, `reflect "child"`}, here.Trace())
		equal(t, "there", []string{
			"list ConfigMap in default", "create ConfigMap default/child", "track ConfigMap default/child for default/test",
		}, there.Trace())
		if stored(there, wanted("child")) == nil {
			t.Error("the child is not there")
		}
		if stored(here, wanted("child")) != nil {
			t.Error("the child is here")
		}
		observers, err := there.Config.Tracker.GetObservers(wanted("child"))
		wantErr(t, nil, err)
		equal(t, "observers", []types.NamespacedName{testRequest.NamespacedName}, observers)
	})
}

func TestWithConfig_Fails(t *testing.T) {
	w := newWorld(t)
	failing := &withConfig{
		Config: func(context.Context, reconcilers.Config) (reconcilers.Config, error) {
			return w.Config, errTest
		},
		Reconciler: never(t),
	}
	got, err := failing.Reconcile(w.Context(), newResource())
	wantErr(t, errTest, err)
	equal(t, "result", reconcilers.Result{}, got)
	wantErr(t, errTest, failing.SetupWithManager(w.Context(), nil, nil))

	const missing = "config must exist on the context. Check that the context is from a ResourceReconciler or WithConfig"
	_, err = (&withConfig{Config: sameConfig, Reconciler: never(t)}).Reconcile(context.Background(), newResource())
	wantText(t, missing, err)
	wantText(t, missing, (&withConfig{Config: sameConfig, Reconciler: never(t)}).SetupWithManager(context.Background(), nil, nil))

	failed, err := (&withConfig{Config: sameConfig, Reconciler: returning(requeue, errTest)}).Reconcile(w.Context(), newResource())
	wantErr(t, errTest, err)
	equal(t, "result beside the error", requeue, failed)
}

func TestWithConfig_SetsUpWithTheOtherConfig(t *testing.T) {
	here, there := newWorld(t), newWorld(t)
	s := &setups{t: t, config: there.Config}
	r := &withConfig{
		Config: func(_ context.Context, config reconcilers.Config) (reconcilers.Config, error) {
			if config != here.Config {
				t.Error("the current config is another one")
			}
			return there.Config, nil
		},
		Reconciler: s.part("a"),
	}
	wantErr(t, nil, r.SetupWithManager(here.Context(), nil, nil))
	equal(t, "set up", []string{"a"}, s.order)
}

func TestWithConfig_AdditionalConfigs(t *testing.T) {
	here, there := newWorld(t, newResource(settled)), newWorld(t)
	called := []string{}
	see := func(ctx context.Context, what string) {
		called = append(called, what)
		if reconcilers.RetrieveConfigOrDie(ctx) != there.Config {
			t.Errorf("the config of %s is not the additional one", what)
		}
	}
	r := &resourceReconciler{Config: here.Config, Reconciler: &withConfig{
		Config: func(ctx context.Context, _ reconcilers.Config) (reconcilers.Config, error) {
			return reconcilers.RetrieveAdditionalConfigs(ctx)["there"], nil
		},
		Reconciler: &syncReconciler{
			Setup: func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error {
				see(ctx, "set-up")
				return nil
			},
			Sync: func(ctx context.Context, _ *fixture.Resource) error {
				see(ctx, "request")
				return nil
			},
		},
	}}
	ctx := reconcilers.StashAdditionalConfigs(context.Background(), map[string]reconcilers.Config{"there": there.Config})
	wantErr(t, nil, r.SetupWithManager(ctx, newManager(t, here, newEventCache(here.Scheme))))
	_, err := r.Reconcile(ctx, testRequest)
	wantErr(t, nil, err)
	equal(t, "called", []string{"set-up", "request"}, called)
}
