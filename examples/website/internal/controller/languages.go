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

// LanguagesReconciler manages one ConfigMap for each language: it creates one when a language is added to the spec, and
// deletes one when a language is removed.
func LanguagesReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildSetReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "Languages",
		DesiredChildren: func(ctx context.Context, site *websitev1.Website) ([]*corev1.ConfigMap, error) {
			if site.DeletionTimestamp != nil {
				return nil, nil // DesiredChildren is called then, too, without a theme
			}
			var children []*corev1.ConfigMap
			for _, language := range site.Spec.Languages {
				translated := render.Translate(pages(site.Spec.Pages), pages(language.Pages))
				child, err := desiredContent(ctx, site, language.Code, translated)
				if err != nil {
					return nil, err
				}
				children = append(children, child)
			}
			return children, nil
		},
		MergeBeforeUpdate: mergeConfigMap,
		OurChild: func(site *websitev1.Website, child *corev1.ConfigMap) bool {
			return manifest.IsLanguage(site, child.Name)
		},
		IdentifyChild: func(child *corev1.ConfigMap) string { return manifest.LanguageOf(child.Name) },
		ReflectChildrenStatusOnParentWithError: func(
			ctx context.Context, site *websitev1.Website, result reconcilers.ChildSetResult[*corev1.ConfigMap],
		) error {
			if result.Err != nil || site.DeletionTimestamp != nil {
				return nil //nolint:nilerr // the languages are unknown, which the set reports, or no longer wanted
			}
			files := filesStash.RetrieveOrEmpty(ctx)
			site.Status.Languages = nil
			for _, language := range result.Children {
				if language.Err != nil {
					markChildError(ctx, site, websitev1.ConditionContentReady, language.Err)
					return reconcilers.ErrHaltSubReconcilers
				}
				if language.Child != nil { // nil if the language was removed
					site.Status.Languages = append(site.Status.Languages, language.Id)
					files[language.Id] = language.Child.Data
				}
			}
			site.Status.ConditionManager(ctx).MarkTrue(websitev1.ConditionContentReady, "Rendered", "")
			return nil
		},
	}
}
