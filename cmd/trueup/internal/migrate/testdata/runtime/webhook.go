// SPDX-License-Identifier: Apache-2.0

package site

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Webhook serves the webhooks.
func Webhook(mgr manager.Manager) error {
	return builder.WebhookManagedBy(mgr).For(&corev1.ConfigMap{}).Complete()
}
