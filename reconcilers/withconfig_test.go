// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

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
