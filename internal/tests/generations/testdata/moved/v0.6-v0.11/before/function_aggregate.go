// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/functions/api/v1"
	"github.com/vmware-labs/reconciler-runtime/reconcilers"
)

func SettingsReconciler(c reconcilers.Config) *reconcilers.AggregateReconciler {
	return &reconcilers.AggregateReconciler{
		Name:    "Settings",
		Type:    &corev1.ConfigMap{},
		Request: reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "settings"}},
		Reconciler: reconcilers.Sequence{
			&reconcilers.WithConfig{
				Reconciler: reconcilers.Sequence{},
				Config:     func(ctx context.Context, c reconcilers.Config) (reconcilers.Config, error) { return c, nil },
			},
		},
		DesiredResource: func(ctx context.Context, resource *corev1.ConfigMap) (client.Object, error) {
			resource.Data = map[string]string{"color": "blue"}
			return resource, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		SemanticEquals:    func(a1, a2 *corev1.ConfigMap) bool { return a1.Data["color"] == a2.Data["color"] },
		Config:            c,
	}
}

func FunctionWebhook(c reconcilers.Config) *admission.Webhook {
	return (&reconcilers.AdmissionWebhookAdapter{
		Name: "Function",
		Type: &v1.Function{},
		Reconciler: &reconcilers.SyncReconciler{
			Sync: func(ctx context.Context, resource *v1.Function) error { return nil },
		},
		Config: c,
	}).Build()
}

var configMaps = &reconcilers.ResourceManager{
	Type:              &corev1.ConfigMap{},
	MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
	SemanticEquals:    func(a1, a2 *corev1.ConfigMap) bool { return a1.Data["color"] == a2.Data["color"] },
}
