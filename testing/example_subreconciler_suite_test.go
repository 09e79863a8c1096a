// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// backupReconciler keeps a config map until its backup is gone.
func backupReconciler() reconcilers.SubReconciler[*corev1.ConfigMap] {
	return &reconcilers.WithFinalizer[*corev1.ConfigMap]{
		Finalizer: "example.com/backup",
		Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{
			Sync: func(context.Context, *corev1.ConfigMap) error { return nil },
			Finalize: func(_ context.Context, original *corev1.ConfigMap) error {
				if original.Data["backup"] == "locked" {
					return errors.New("the backup is locked")
				}
				return nil
			},
		},
	}
}

// testBackup would be named TestBackup if it were not an example.
func testBackup(t *testing.T) {
	scheme := clientgoscheme.Scheme
	original := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	deleted := rtesting.With(original, func(c *corev1.ConfigMap) {
		c.DeletionTimestamp = new(metav1.Now())
		c.Finalizers = []string{"example.com/backup"}
	})
	event := rtesting.NewEvent(
		original, scheme, corev1.EventTypeNormal, "FinalizerPatched", `Patched finalizer "example.com/backup"`,
	)
	patch := func(patch string) []rtesting.PatchRef {
		return []rtesting.PatchRef{{
			Kind: "ConfigMap", Namespace: "default", Name: "settings", PatchType: types.MergePatchType, Patch: []byte(patch),
		}}
	}

	rtesting.SubReconcilerTestSuite[*corev1.ConfigMap]{
		{
			Name:     "the finalizer is there before the backup is",
			Resource: original,
			// A resource without a resource version has the version 999, and the next one when it was patched.
			ExpectPatches: patch(`{"metadata":{"finalizers":["example.com/backup"],"resourceVersion":"999"}}`),
			ExpectEvents:  []rtesting.Event{event},
			ExpectResource: rtesting.With(original, func(c *corev1.ConfigMap) {
				c.Finalizers = []string{"example.com/backup"}
				c.ResourceVersion = "1000"
			}),
		},
		{
			Name:          "the finalizer goes with the backup",
			Resource:      deleted,
			ExpectPatches: patch(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`),
			ExpectEvents:  []rtesting.Event{event},
			ExpectResource: rtesting.With(deleted, func(c *corev1.ConfigMap) {
				c.Finalizers = nil
				c.ResourceVersion = "1000"
			}),
		},
		{
			Name: "the finalizer stays with the backup",
			Resource: rtesting.With(deleted, func(c *corev1.ConfigMap) {
				c.Data = map[string]string{"backup": "locked"}
			}),
			ShouldErr: true,
		},
	}.Run(t, scheme, func(
		*testing.T, *rtesting.SubReconcilerTestCase[*corev1.ConfigMap], reconcilers.Config,
	) reconcilers.SubReconciler[*corev1.ConfigMap] {
		return backupReconciler()
	})
}

func ExampleSubReconcilerTestSuite() {
	var t *testing.T // of your own test function
	testBackup(t)
}
