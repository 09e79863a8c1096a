// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// The client decodes the response of an update into the object that it sent. The object that was read must not change.
func TestUpdatingObjectManager_DoesNotChangeManagedFields(t *testing.T) {
	managed := func(manager string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate}}
	}
	w := newWorld(t, newResource(), newConfigMap("child"))
	w.Admit = func(obj client.Object) {
		// Decoding reuses the memory of a slice.
		if fields := obj.GetManagedFields(); len(fields) > 0 {
			fields[0].Manager = "after"
		}
		obj.SetManagedFields(nil)
	}
	manager := &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
	}
	actual := newConfigMap("child", func(cm *corev1.ConfigMap) { cm.ManagedFields = managed("before") })
	desired := newConfigMap("child", func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"changed": "yes"} })
	_, err := manager.Manage(w.Context(), newResource(), actual, desired)
	wantErr(t, nil, err)
	equal(t, "managed fields of the object that was read", managed("before"), actual.ManagedFields)
	equal(t, "updates", 1, w.Count("update ConfigMap"))
}

// Each of several concurrent requests must compare the status with that of its own resource.
func TestResourceReconciler_ComparesItsOwnStatus(t *testing.T) {
	ready := newResource(func(r *fixture.Resource) { r.Status.Fields = map[string]string{"is": "ready"} })
	w := newWorld(t, ready)
	r := &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{Sync: func(
		_ context.Context, r *fixture.Resource,
	) error {
		r.Status.Fields["is"] = "changed"
		r.Status.Fields["is"] = "ready"
		return nil
	}}}
	_, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	w.Trace()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if _, err := r.Reconcile(context.Background(), testRequest); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	equal(t, "status writes", 0, w.Count("update Resource/status"))
}
