// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmware-labs/reconciler-runtime/reconcilers"
)

func halts(_ context.Context, resource *corev1.ConfigMap) error {
	if resource.Labels["paused"] != "" {
		return reconcilers.HaltSubReconcilers
	}
	return nil
}
