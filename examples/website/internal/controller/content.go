// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/internal/manifest"
	"trueup.dev/examples/website/internal/render"
	"trueup.dev/reconcilers"
)

// filesStash passes the files that are in the cluster to later steps.
var filesStash = reconcilers.NewStasher[manifest.Files]("files")

// ContentReconciler manages the ConfigMap with the rendered pages.
func ContentReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "Content",
		DesiredChild: func(ctx context.Context, site *websitev1.Website) (*corev1.ConfigMap, error) {
			return desiredContent(ctx, site, "", pages(site.Spec.Pages))
		},
		MergeBeforeUpdate: mergeConfigMap,
		// The site also owns the ConfigMaps of its languages. The name distinguishes them: it cannot be changed.
		OurChild: func(site *websitev1.Website, child *corev1.ConfigMap) bool {
			return child.Name == manifest.ContentName(site, "")
		},
		ReflectChildStatusOnParentWithError: func(
			ctx context.Context, site *websitev1.Website, child *corev1.ConfigMap, err error,
		) error {
			if err != nil {
				markChildError(ctx, site, websitev1.ConditionContentReady, err)
				return reconcilers.ErrHaltSubReconcilers // the web servers must not serve a ConfigMap of another owner
			}
			filesStash.Store(ctx, manifest.Files{"": child.Data})
			return nil
		},
	}
}

// desiredContent renders pages. An error of the theme is not retried, because its author must correct it.
func desiredContent(
	ctx context.Context, site *websitev1.Website, language string, pages []render.Page,
) (*corev1.ConfigMap, error) {
	files, err := themeStash.RetrieveOrDie(ctx).Site(site.Spec.Domain, language, pages)
	if err != nil {
		site.Status.ConditionManager(ctx).MarkFalse(websitev1.ConditionContentReady, "ThemeBroken", "%s", err)
		return nil, reconcilers.ErrHaltSubReconcilers
	}
	return manifest.Content(site, language, files), nil
}

// mergeConfigMap keeps labels that other clients have set on a child.
func mergeConfigMap(current, desired *corev1.ConfigMap) {
	current.Labels = reconcilers.MergeMaps(current.Labels, desired.Labels)
	current.Data, current.BinaryData = desired.Data, nil
}

func pages(of []websitev1.Page) []render.Page {
	result := make([]render.Page, len(of))
	for i, page := range of {
		result[i] = render.Page(page)
	}
	return result
}
