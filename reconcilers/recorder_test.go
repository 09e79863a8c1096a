// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// A Config without a recorder records no events.
func TestConfig_NeedsNoRecorder(t *testing.T) {
	for name, fails := range map[string]bool{"writes that succeed": false, "writes that fail": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource())
			w.Config.Recorder = nil
			if fails {
				w.Config.Client = refusingClient{w.Config.Client}
			}
			child := &reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
				DesiredChild: func(_ context.Context, r *fixture.Resource) (*corev1.ConfigMap, error) {
					return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}, nil
				},
				MergeBeforeUpdate:          func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
				ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {},
			}
			root := &resourceReconciler{Config: w.Config, Reconciler: &reconcilers.WithFinalizer[*fixture.Resource]{
				Finalizer: "test.example.com/it", Reconciler: child,
			}}
			if _, err := root.Reconcile(t.Context(), testRequest); (err != nil) != fails {
				t.Errorf("error %v", err)
			}
			found := w.Server.Get(t.Context(), testRequest.NamespacedName, &corev1.ConfigMap{}) == nil
			if found == fails {
				t.Errorf("the child exists: %t", found)
			}
		})
	}
}

// refusingClient fails all writes.
type refusingClient struct{ client.Client }

func (refusingClient) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errTest
}

func (refusingClient) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errTest
}
