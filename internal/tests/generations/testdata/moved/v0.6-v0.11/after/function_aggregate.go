// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/functions/api/v1"
	"trueup.dev/reconcilers"
)

func SettingsReconciler(c reconcilers.Config) *reconcilers.AggregateReconciler[*corev1.ConfigMap] {
	return &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
		Name:    "Settings",
		Type:    &corev1.ConfigMap{},
		Request: reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "settings"}},
		Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{
			&reconcilers.WithConfig[*corev1.ConfigMap]{
				Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{},
				Config:     func(ctx context.Context, c reconcilers.Config) (reconcilers.Config, error) { return c, nil },
			},
		},
		DesiredResource: func(ctx context.Context, resource *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			resource.Data = map[string]string{"color": "blue"}
			return resource, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		Config:            c,
	}
}

func FunctionWebhook(c reconcilers.Config) *admission.Webhook {
	return (&reconcilers.AdmissionWebhookAdapter[*v1.Function]{
		Name: "Function",
		Type: &v1.Function{},
		Reconciler: &reconcilers.SyncReconciler[*v1.Function]{
			Sync: func(ctx context.Context, resource *v1.Function) error { return nil },
		},
		Config: c,
	}).Build()
}

var configMaps = &reconcilers.ResourceManager[*corev1.ConfigMap]{
	Type:              &corev1.ConfigMap{},
	MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
}
