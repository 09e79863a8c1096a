// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/internal/render"
	"trueup.dev/reconcilers"
)

// themeStash passes the theme to the steps that render.
var themeStash = reconcilers.NewStasher[*render.Theme]("theme")

// ThemeReconciler reads the theme. Without a theme no page can be rendered, so the reconcile halts, and existing
// content stays as it is. The theme is tracked even while it does not exist: when it is created, the site is
// reconciled.
func ThemeReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Name: "Theme",
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			status := site.Status.ConditionManager(ctx)
			var source corev1.ConfigMap
			if ref := site.Spec.ThemeRef; ref != nil {
				key := types.NamespacedName{Namespace: site.Namespace, Name: ref.Name}
				err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &source)
				if apierrs.IsNotFound(err) {
					status.MarkFalse(websitev1.ConditionContentReady, "ThemeNotFound", "ConfigMap %q does not exist", ref.Name)
					return reconcilers.ErrHaltSubReconcilers
				}
				if err != nil {
					return err
				}
			}
			theme, err := render.ParseTheme(source.Data)
			if err != nil {
				status.MarkFalse(websitev1.ConditionContentReady, "ThemeBroken", "%s", err)
				return reconcilers.ErrHaltSubReconcilers
			}
			themeStash.Store(ctx, theme)
			return nil
		},
	}
}
