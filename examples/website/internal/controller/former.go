// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/internal/manifest"
	"trueup.dev/reconcilers"
)

// FormerStyleReconciler deletes the ConfigMap with the style sheet, which the first release created for each site: now
// the theme is part of the content. It does so in each reconcile, and not just once after an upgrade, because a late
// write of the first release can create it again.
func FormerStyleReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "FormerStyle",
		DesiredChild: func(context.Context, *websitev1.Website) (*corev1.ConfigMap, error) {
			return nil, nil // none is desired
		},
		MergeBeforeUpdate: mergeConfigMap,
		OurChild: func(site *websitev1.Website, child *corev1.ConfigMap) bool {
			return child.Name == manifest.FormerStyleName(site)
		},
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *websitev1.Website, _ *corev1.ConfigMap, err error,
		) error {
			return err
		},
	}
}
