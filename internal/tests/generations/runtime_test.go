// SPDX-License-Identifier: Apache-2.0

package generations

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// These are the examples that the documentation of reconciler.io runtime adds to the examples of v0.19. The others are
// identical except for the import path.

// A custom object manager must be set up by the code that uses it.
func TestRuntime_SetupOfAnObjectManager(t *testing.T) {
	manager := &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
	}
	requireWiring(t, rtesting.Wiring{For: []rtesting.Watch{{Object: &Function{}}}}, func(
		reconcilers.Config,
	) reconcilers.SubReconciler[*Function] {
		return &reconcilers.SyncReconciler[*Function]{
			Sync:  func(context.Context, *Function) error { return nil },
			Setup: manager.SetupWithManager, // was manager.Setup(ctx)
		}
	})
}

// onlyCreate is a custom strategy: an object is created once and never changed.
type onlyCreate struct{}

var _ reconcilers.ObjectManager[*corev1.ConfigMap] = onlyCreate{}

func (onlyCreate) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (onlyCreate) Manage(
	ctx context.Context, _ client.Object, actual, desired *corev1.ConfigMap,
) (*corev1.ConfigMap, error) {
	if desired == nil || (actual != nil && !actual.CreationTimestamp.IsZero()) {
		return actual, nil
	}
	return desired, reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, desired)
}

func TestRuntime_ObjectManager(t *testing.T) {
	managers := map[string]struct {
		manager reconcilers.ObjectManager[*corev1.ConfigMap]
		want    string
	}{
		"updating": {
			manager: &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
				MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
			},
			want: "second",
		},
		"custom": {manager: onlyCreate{}, want: "first"},
	}
	for name, tt := range managers {
		t.Run(name, func(t *testing.T) {
			value := "first"
			var got string
			r := &reconcilers.ChildReconciler[*Function, *corev1.ConfigMap, *corev1.ConfigMapList]{
				DesiredChild: func(_ context.Context, parent *Function) (*corev1.ConfigMap, error) {
					return &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{
							Namespace: parent.Namespace,
							Name:      parent.Name,
						},
						Data: map[string]string{"value": value},
					}, nil
				},
				ChildObjectManager: tt.manager,
				ReflectChildStatusOnParent: func(_ context.Context, _ *Function, child *corev1.ConfigMap, _ error) {
					got = child.Data["value"]
				},
			}
			function := newFunction()
			w := newWorld(t, function)
			reconcileBelow(t, w, r, function)
			value = "second"
			reconcileBelow(t, w, r, function)
			equal(t, "value", tt.want, got)
		})
	}
}
