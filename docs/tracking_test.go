// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
)

// region tracking-get
func ThemeReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Name: "Theme",
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx)) // without it nothing is ever triggered
			return nil
		},
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			theme := &corev1.ConfigMap{}
			key := client.ObjectKey{Namespace: site.Namespace, Name: site.Spec.ThemeRef.Name}
			err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, theme)
			if apierrs.IsNotFound(err) {
				// Tracked all the same: the site is reconciled when the theme comes into being.
				site.Status.ConditionManager(ctx).MarkFalse(websitev1.ConditionContentReady, "ThemeNotFound", "there is no ConfigMap %q", key.Name)
				return reconcilers.ErrHaltSubReconcilers
			}
			return err
		},
	}
}

// endregion

func Example_trackAndGet() {
	site := newSite()
	site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
	cluster := newCluster(site)
	reconcileOnce(cluster, ThemeReconciler())

	theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "paper"}}
	observers, err := cluster.Tracker.GetObservers(theme)
	fmt.Println(observers, err)
	// Output:
	// [default/bakery] <nil>
}

func Example_trackAndList() {
	cluster := newCluster(newSite())
	reconcileOnce(cluster, &reconcilers.SyncReconciler[*websitev1.Website]{
		// region tracking-list
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			adverts := &corev1.ConfigMapList{}
			return reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, adverts,
				client.InNamespace(site.Namespace), client.MatchingLabels{"demo.trueup.dev/advert": "true"})
		},
		// endregion
	})
	later := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "christmas", Labels: map[string]string{"demo.trueup.dev/advert": "true"},
	}}
	observers, err := cluster.Tracker.GetObservers(later)
	fmt.Println(observers, err)
	// Output:
	// [default/bakery] <nil>
}
