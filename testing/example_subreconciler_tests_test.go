// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
)

// limits are what the subreconciler below has found out, for those that come after it.
var limits = stash.New[map[string]string]("example.com/limits")

// limitsReconciler looks up the limits for deployments of a namespace.
func limitsReconciler() reconcilers.SubReconciler[*appsv1.Deployment] {
	return &reconcilers.SyncReconciler[*appsv1.Deployment]{
		Sync: func(ctx context.Context, deployment *appsv1.Deployment) error {
			found := &corev1.ConfigMap{}
			key := types.NamespacedName{Namespace: deployment.Namespace, Name: "limits"}
			if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, found); err != nil {
				return err
			}
			limits.Store(ctx, found.Data)
			deployment.Annotations = reconcilers.MergeMaps(deployment.Annotations, map[string]string{
				"example.com/limits": found.ResourceVersion,
			})
			return nil
		},
	}
}

// testLimits would be named TestLimits if it were not an example.
func testLimits(t *testing.T) {
	scheme := clientgoscheme.Scheme
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	given := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "limits", ResourceVersion: "3"},
		Data:       map[string]string{"memory": "1Gi"},
	}
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(given, deployment, scheme)}

	rtesting.SubReconcilerTests[*appsv1.Deployment]{
		"without limits": {
			Resource:     deployment,
			ExpectTracks: tracks,
			ShouldErr:    true,
		},
		"with limits": {
			Resource:     deployment,
			GivenObjects: []client.Object{given},
			ExpectTracks: tracks,
			ExpectResource: rtesting.With(deployment, func(d *appsv1.Deployment) {
				d.Annotations = map[string]string{"example.com/limits": "3"}
			}),
			ExpectStashedValues: map[stash.Key]interface{}{
				limits.Key(): map[string]string{"memory": "1Gi"},
			},
		},
	}.Run(t, scheme, func(
		*testing.T, *rtesting.SubReconcilerTestCase[*appsv1.Deployment], reconcilers.Config,
	) reconcilers.SubReconciler[*appsv1.Deployment] {
		return limitsReconciler()
	})
}

func ExampleSubReconcilerTests() {
	var t *testing.T // of your own test function
	testLimits(t)
}
