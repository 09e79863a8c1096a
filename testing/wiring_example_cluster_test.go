// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// setUpMirror sets a controller up that copies ConfigMaps into another cluster.
func setUpMirror(ctx context.Context, mgr ctrl.Manager, remote cluster.Cluster, config reconcilers.Config) error {
	if err := mgr.Add(remote); err != nil {
		return err
	}
	there := config.WithCluster(remote)
	mirror := &reconcilers.ResourceReconciler[*corev1.ConfigMap]{
		Reconciler: &reconcilers.WithConfig[*corev1.ConfigMap]{
			Config: func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return there, nil },
			Reconciler: &reconcilers.ChildReconciler[*corev1.ConfigMap, *corev1.Secret, *corev1.SecretList]{
				DesiredChild: func(context.Context, *corev1.ConfigMap) (*corev1.Secret, error) { return &corev1.Secret{}, nil },
				ReflectChildStatusOnParentWithError: func(
					_ context.Context, _ *corev1.ConfigMap, _ *corev1.Secret, err error,
				) error {
					return err // it has no condition to put the error into
				},
				MergeBeforeUpdate: func(_, _ *corev1.Secret) {},
			},
		},
		Config: config,
	}
	return mirror.SetupWithManager(ctx, mgr)
}

// testMirrorWiring would be named TestMirrorWiring if it were not an example.
func testMirrorWiring(t *testing.T) {
	wiring := rtesting.RecordWiring(t, clientgoscheme.Scheme, func(
		ctx context.Context, mgr ctrl.Manager, config reconcilers.Config,
	) error {
		return setUpMirror(ctx, mgr, rtesting.OtherCluster(t, mgr, "remote"), config)
	})
	wiring.Assert(t, &rtesting.Wiring{
		For:    []rtesting.Watch{{Object: &corev1.ConfigMap{}}},
		Owns:   []rtesting.Watch{{Object: &corev1.Secret{}, Cluster: "remote"}},
		Tracks: []rtesting.Watch{{Object: &corev1.Secret{}, Cluster: "remote"}},
	})
}

func ExampleOtherCluster() {
	var t *testing.T // of your own test function
	testMirrorWiring(t)
}
