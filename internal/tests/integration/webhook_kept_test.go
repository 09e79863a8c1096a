// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// Is a change made if a webhook keeps the old value? The author learns it, and it is made when the webhook lets
// it through.
func TestWebhook_keepsTheOldValue(t *testing.T) {
	e := newEnv(t)
	var keeps atomic.Bool
	e.mutate(&reconcilers.SyncReconciler[*fixture.Resource]{
		Sync: func(ctx context.Context, r *fixture.Resource) error {
			r.Spec.Fields["seen"] = "yes"
			if request := reconcilers.RetrieveAdmissionRequest(ctx); keeps.Load() && request.Operation == admissionv1.Update {
				old := &fixture.Resource{}
				if err := json.Unmarshal(request.OldObject.Raw, old); err != nil {
					return err
				}
				r.Spec.Fields["image"] = old.Spec.Fields["image"]
			}
			return nil
		},
	})
	var reflected atomic.Pointer[string]
	e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		r := &reconcilers.ResourceReconciler[*corev1.ConfigMap]{
			Config: c,
			SkipResource: func(_ context.Context, parent *corev1.ConfigMap) bool {
				return parent.Data["image"] == "" // the namespace has others
			},
			Reconciler: &reconcilers.ChildReconciler[*corev1.ConfigMap, *fixture.Resource, *fixture.ResourceList]{
				DesiredChild: func(_ context.Context, parent *corev1.ConfigMap) (*fixture.Resource, error) {
					child := newResource(parent.Name, map[string]string{"image": parent.Data["image"]})
					child.Namespace = parent.Namespace
					return child, nil
				},
				MergeBeforeUpdate: func(current, desired *fixture.Resource) { current.Spec = desired.Spec },
				ReflectChildStatusOnParent: func(_ context.Context, _ *corev1.ConfigMap, _ *fixture.Resource, err error) {
					reflected.Store(new(fmt.Sprint(err)))
				},
			},
		}
		return r.SetupWithManager(ctx, mgr)
	})
	parent, child := newConfigMap("it", map[string]string{"image": "old"}), newResource("it", nil)
	e.Add(parent)
	child.Namespace = e.Namespace
	image := func(want string) {
		t.Helper()
		until(e, child, func(r *fixture.Resource) error {
			if got := r.Spec.Fields["image"]; got != want {
				return fmt.Errorf("the child has the image %q, want %q", got, want)
			}
			return nil
		})
	}
	image("old")

	keeps.Store(true)
	change(e, parent, func(parent *corev1.ConfigMap) { parent.Data["image"] = "new" })
	e.eventText("UpdateFailed", "kept the old values")
	e.Eventually(func() error {
		if text := *reflected.Load(); !strings.Contains(text, "spec.fields[image]") {
			return fmt.Errorf("reflected is %s", text)
		}
		return nil
	})
	image("old")

	keeps.Store(false)
	image("new") // after ten seconds, without an event
}
