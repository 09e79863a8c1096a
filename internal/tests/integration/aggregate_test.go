// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

// summary aggregates the ConfigMaps of the namespace that have the label part into one. It has no child if no parts
// exist.
func summary(e *env) setup {
	parts := reconcilers.NewStasher[map[string]string]("parts")
	return func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		return (&reconcilers.AggregateReconciler[*corev1.ConfigMap]{
			Name:    "Summary",
			Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: e.Namespace, Name: "summary"}},
			Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{
				Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
					bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
					return nil
				},
				Sync: func(ctx context.Context, _ *corev1.ConfigMap) error {
					var list corev1.ConfigMapList
					c := reconcilers.RetrieveConfigOrDie(ctx)
					if err := c.TrackAndList(ctx, &list, client.InNamespace(e.Namespace), client.HasLabels{"part"}); err != nil {
						return err
					}
					found := map[string]string{}
					for _, part := range list.Items {
						found[part.Name] = part.Data["value"]
					}
					parts.Store(ctx, found)
					return nil
				},
			},
			DesiredResource: func(ctx context.Context, resource *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				resource.Data = parts.RetrieveOrDie(ctx)
				if len(resource.Data) == 0 {
					return nil, nil
				}
				return resource, nil
			},
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
			Config:            c,
		}).SetupWithManager(ctx, mgr)
	}
}

func newPart(name, value string) *corev1.ConfigMap {
	part := newConfigMap(name, map[string]string{"value": value})
	part.Labels = map[string]string{"part": ""}
	return part
}

func dataIs(want map[string]string) func(*corev1.ConfigMap) error {
	return func(got *corev1.ConfigMap) error {
		if diff := cmp.Diff(want, got.Data); diff != "" {
			return fmt.Errorf("data of %s (-want +got):\n%s", got.Name, diff)
		}
		return nil
	}
}

func TestAggregate(t *testing.T) {
	e := newEnv(t)
	a, b := newPart("a", "1"), newPart("b", "2")
	e.Add(a)
	e.Add(b)
	e.start(summary(e))

	got := newConfigMap("summary", nil)
	until(e, got, dataIs(map[string]string{"a": "1", "b": "2"})) // created, although no event triggered it

	change(e, got, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"drift": "by hand"} })
	until(e, got, dataIs(map[string]string{"a": "1", "b": "2"}))

	change(e, a, func(cm *corev1.ConfigMap) { cm.Data["value"] = "3" })
	until(e, got, dataIs(map[string]string{"a": "3", "b": "2"}))

	uid := got.UID
	e.Must(e.Delete(t.Context(), got))
	until(e, got, func(cm *corev1.ConfigMap) error {
		if cm.UID == uid {
			return fmt.Errorf("the deleted summary still exists")
		}
		return dataIs(map[string]string{"a": "3", "b": "2"})(cm)
	})

	e.Must(e.Delete(t.Context(), a))
	e.Must(e.Delete(t.Context(), b))
	e.WaitForDeletion(newConfigMap("summary", nil)) // no longer desired
	e.events("summary", "Created", "Updated", "Deleted")

	e.Add(newPart("c", "4"))
	until(e, newConfigMap("summary", nil), dataIs(map[string]string{"c": "4"}))
}

// A manager that starts when everything is up to date writes nothing.
func TestAggregate_writesNothingIfUpToDate(t *testing.T) {
	e := newEnv(t)
	e.Add(newPart("a", "1"))
	stop := e.start(summary(e))
	until(e, newConfigMap("summary", nil), dataIs(map[string]string{"a": "1"}))
	stop()
	e.start(summary(e))
	e.Add(newPart("b", "2"))
	until(e, newConfigMap("summary", nil), dataIs(map[string]string{"a": "1", "b": "2"}))
	if diff := cmp.Diff([]string{"POST", "PUT"}, e.traffic.of("configmaps")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
