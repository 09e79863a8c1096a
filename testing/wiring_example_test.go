// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// setUpPodReaper sets a controller up that deletes pods of nodes that are gone.
func setUpPodReaper(mgr ctrl.Manager, config reconcilers.Config) error {
	reaper := &reconcilers.ResourceReconciler[*corev1.Pod]{
		Name:            "pod-reaper",
		SetupForOptions: []builder.ForOption{builder.WithPredicates(predicate.GenerationChangedPredicate{})},
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.Node{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
		Reconciler: &reconcilers.SyncReconciler[*corev1.Pod]{
			Sync: func(context.Context, *corev1.Pod) error { return nil },
		},
		Config: config,
	}
	return reaper.SetupWithManager(context.Background(), mgr)
}

// testPodReaperWiring would be named TestPodReaperWiring if it were not an example.
func testPodReaperWiring(t *testing.T) {
	wiring := rtesting.RecordWiring(t, clientgoscheme.Scheme, func(
		_ context.Context, mgr ctrl.Manager, config reconcilers.Config,
	) error {
		return setUpPodReaper(mgr, config)
	})
	wiring.Assert(t, &rtesting.Wiring{
		Controller: "pod-reaper",
		For: []rtesting.Watch{{
			Object: &corev1.Pod{},
			Ignores: []rtesting.Change{
				rtesting.StatusChanged, rtesting.LabelsChanged, rtesting.AnnotationsChanged, rtesting.Resynced,
			},
		}},
		Tracks: []rtesting.Watch{{Object: &corev1.Node{}}},
	})
}

func ExampleRecordWiring() {
	var t *testing.T // of your own test function
	testPodReaperWiring(t)
}
