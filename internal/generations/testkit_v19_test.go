// SPDX-License-Identifier: Apache-2.0

//nolint:staticcheck,govet // tests the deprecated names
package generations

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
	rtime "trueup.dev/time"
)

// The documented tests of v0.12 to v0.19, and of reconciler.io runtime: Run instead of Test, and type parameters.

func TestV19_ReconcilerTests(t *testing.T) {
	createsImage := createsImage()
	createsImage.Request = reconcilers.Request{NamespacedName: testKey}

	rts := rtesting.ReconcilerTests{
		"creates image": createsImage,
	}

	rts.Run(t, testScheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return trackingFunctionReconciler(c, "system")
	})
}

func TestV19_SubReconcilerTests(t *testing.T) {
	rts := rtesting.SubReconcilerTests[*Function]{
		"missing images configmap": {
			Resource: function.DieReleasePtr(),
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.NewTrackRequest(imagesConfigMap, function, testScheme),
			},
			ShouldErr: true,
		},
		"stash images": {
			Resource: function.DieReleasePtr(),
			GivenObjects: []client.Object{
				imagesConfigMap,
			},
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.NewTrackRequest(imagesConfigMap, function, testScheme),
			},
			ExpectStashedValues: map[reconcilers.StashKey]interface{}{
				imagesStashKey: imagesConfigMap.Data,
			},
		},
	}

	rts.Run(
		t,
		testScheme,
		func(
			*testing.T, *rtesting.SubReconcilerTestCase[*Function], reconcilers.Config,
		) reconcilers.SubReconciler[*Function] {
			return trackImages("system")
		},
	)
}

// A custom function compares the stashed values.
func TestV19_VerifyStashedValue(t *testing.T) {
	verified := 0
	rts := rtesting.SubReconcilerTestSuite[*Function]{{
		Name:     "stash images",
		Resource: function.DieReleasePtr(),
		GivenObjects: []client.Object{
			imagesConfigMap,
		},
		ExpectTracks: []rtesting.TrackRequest{
			rtesting.NewTrackRequest(imagesConfigMap, function, testScheme),
		},
		ExpectStashedValues: map[reconcilers.StashKey]interface{}{
			imagesStashKey: 1, // only the number
		},
		VerifyStashedValue: func(t *testing.T, key reconcilers.StashKey, expected, actual interface{}) {
			verified++
			images, _ := actual.(map[string]string)
			if diff := cmp.Diff(expected, len(images)); key != imagesStashKey || diff != "" {
				t.Errorf("%s (-expected +actual):\n%s", key, diff)
			}
		},
	}}

	rts.Run(
		t,
		testScheme,
		func(
			*testing.T, *rtesting.SubReconcilerTestCase[*Function], reconcilers.Config,
		) reconcilers.SubReconciler[*Function] {
			return trackImages("system")
		},
	)
	equal(t, "verified", 1, verified)
}

// The case sets the time, and expectations use it.
func TestV19_Now(t *testing.T) {
	now := time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)
	gateway := newGateway()
	started := copied(gateway)
	started.Status.ObservedGeneration = 1
	started.Status.StartedAt = &metav1.Time{Time: now}

	rts := rtesting.ReconcilerTests{
		"records when it started": {
			Now:                    now,
			Request:                reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(gateway)},
			StatusSubResourceTypes: []client.Object{&Gateway{}},
			GivenObjects: []client.Object{
				gateway,
			},
			ExpectStatusUpdates: []client.Object{
				started,
			},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(gateway, testScheme, corev1.EventTypeNormal, "StatusUpdated", `Updated status`),
			},
		},
	}

	rts.Run(t, testScheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return &reconcilers.ResourceReconciler[*Gateway]{
			Reconciler: &reconcilers.SyncReconciler[*Gateway]{
				Sync: func(ctx context.Context, resource *Gateway) error {
					resource.Status.StartedAt = &metav1.Time{Time: rtime.RetrieveTime(ctx)}
					return nil
				},
			},
			Config: c,
		}
	})
}
