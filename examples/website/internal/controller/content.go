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

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;patch;delete

// filesStash hands on the files as they are in the cluster now.
var filesStash = reconcilers.NewStasher[manifest.Files]("files")

// ContentReconciler manages the ConfigMap with the rendered pages.
func ContentReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "Content",
		DesiredChild: func(ctx context.Context, site *websitev1.Website) (*corev1.ConfigMap, error) {
			return desiredContent(ctx, site, "", pages(site.Spec.Pages))
		},
		MergeBeforeUpdate: mergeConfigMap,
		// The site also owns the ConfigMaps of its languages. Names tell them apart: nobody can edit a name.
		OurChild: func(site *websitev1.Website, child *corev1.ConfigMap) bool {
			return child.Name == manifest.ContentName(site, "")
		},
		ReflectChildStatusOnParentWithError: func(
			ctx context.Context, site *websitev1.Website, child *corev1.ConfigMap, err error,
		) error {
			if err != nil {
				markChildError(ctx, site, websitev1.ConditionContentReady, err)
				return reconcilers.ErrHaltSubReconcilers // the web servers must not serve what is not ours
			}
			filesStash.Store(ctx, manifest.Files{"": child.Data})
			return nil
		},
	}
}

// desiredContent renders pages. A theme that cannot is a mistake of its author: trying again does not help.
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

// mergeConfigMap leaves the labels that others have put on a child.
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
