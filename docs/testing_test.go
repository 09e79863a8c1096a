// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"html"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bannerv1 "trueup.dev/docs/internal/banner/v1"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
	rtime "trueup.dev/time"
)

// The reconciler of the tutorial on testing without the bugs of testing_untested_test.go, and the tests that found
// them.

var textStasher = reconcilers.NewStasher[string]("docs.trueup.dev/text")

func BannerReconciler(c reconcilers.Config) *reconcilers.ResourceReconciler[*bannerv1.Banner] {
	return &reconcilers.ResourceReconciler[*bannerv1.Banner]{
		Reconciler: reconcilers.Sequence[*bannerv1.Banner]{TextReconciler(), LapseReconciler(), PageReconciler()},
		Config:     c,
	}
}

func TextReconciler() reconcilers.SubReconciler[*bannerv1.Banner] {
	return &reconcilers.SyncReconciler[*bannerv1.Banner]{
		Name: "Text",
		// region testing-text-watch
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
		// endregion
		// region testing-text-fixed
		Sync: func(ctx context.Context, banner *bannerv1.Banner) error {
			found := &corev1.ConfigMap{}
			key := client.ObjectKey{Namespace: banner.Namespace, Name: banner.Spec.TextFrom}
			if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, found); client.IgnoreNotFound(err) != nil {
				return err
			}
			if found.Data["text"] == "" {
				banner.Status.MarkNotShown(ctx, "NoText", "ConfigMap %q has no text", key.Name)
			}
			textStasher.Store(ctx, found.Data["text"])
			return nil
		},
		// endregion
	}
}

func LapseReconciler() reconcilers.SubReconciler[*bannerv1.Banner] {
	return &reconcilers.SyncReconciler[*bannerv1.Banner]{
		Name: "Lapse",
		SyncWithResult: func(ctx context.Context, banner *bannerv1.Banner) (reconcilers.Result, error) {
			left := banner.Spec.Until.Sub(rtime.RetrieveNow(ctx))
			if left > 0 {
				return reconcilers.Result{RequeueAfter: left}, nil
			}
			textStasher.Clear(ctx)
			banner.Status.MarkNotShown(ctx, "Lapsed", "")
			return reconcilers.Result{}, nil
		},
	}
}

func PageReconciler() reconcilers.SubReconciler[*bannerv1.Banner] {
	return &reconcilers.ChildReconciler[*bannerv1.Banner, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChild: func(ctx context.Context, banner *bannerv1.Banner) (*corev1.ConfigMap, error) {
			text := textStasher.RetrieveOrEmpty(ctx)
			if text == "" {
				return nil, nil
			}
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: banner.Namespace, Name: banner.Name + "-page",
					// region testing-page-fixed
					Annotations: map[string]string{"docs.trueup.dev/until": banner.Spec.Until.UTC().Format(time.RFC3339)},
					// endregion
				},
				Data: map[string]string{"banner.html": "<p>" + html.EscapeString(text) + "</p>"},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Annotations = reconcilers.MergeMaps(current.Annotations, desired.Annotations)
			current.Data = desired.Data
		},
		ReflectChildStatusOnParent: func(ctx context.Context, banner *bannerv1.Banner, page *corev1.ConfigMap, err error) {
			switch {
			case err != nil:
				banner.Status.MarkNotShown(ctx, "PageFailed", "%s", err)
			case page != nil:
				banner.Status.MarkShown(ctx)
			}
		},
	}
}

var scheme = bannerv1.NewScheme()

// region testing-objects
var (
	today = time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)

	sale = &bannerv1.Banner{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sale", UID: "sale-uid", Generation: 1},
		Spec:       bannerv1.BannerSpec{TextFrom: "greeting", Until: metav1.NewTime(today.Add(24 * time.Hour))},
	}
	greeting = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "greeting"},
		Data:       map[string]string{"text": "Bread & butter"},
	}
)

// endregion

// FirstCase runs the first case of the tutorial, which fails.
func FirstCase(t *testing.T, factory rtesting.ReconcilerFactory) {
	// region testing-first-case
	rtesting.ReconcilerTests{
		"shows the text": {
			Request:                reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(sale)},
			Now:                    today,
			StatusSubResourceTypes: []client.Object{sale},
			GivenObjects:           []client.Object{sale, greeting},
		},
	}.Run(t, scheme, factory)
	// endregion
}

var page = &corev1.ConfigMap{
	ObjectMeta: metav1.ObjectMeta{
		Name:            "sale-page",
		Namespace:       "shop",
		Annotations:     map[string]string{"docs.trueup.dev/until": "2026-05-02T09:00:00Z"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(sale, bannerv1.GroupVersion.WithKind("Banner"))},
	},
	Data: map[string]string{"banner.html": "<p>Bread &amp; butter</p>"},
}

// region testing-derived
var (
	// at is the context of a reconciler whose Now is today.
	at = rtime.StashNow(context.Background(), today)

	shown    = rtesting.With(sale, func(banner *bannerv1.Banner) { banner.Status.MarkShown(at) })
	shownNow = rtesting.With(shown, func(banner *bannerv1.Banner) { banner.Status.ObservedGeneration = 1 })

	tracksGreeting = []rtesting.TrackRequest{rtesting.NewTrackRequest(greeting, sale, scheme)}
)

// endregion

// region testing-root-cases
var BannerCases = rtesting.ReconcilerTests{
	"shows the text": {
		Request:                reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(sale)},
		Now:                    today,
		StatusSubResourceTypes: []client.Object{sale},
		GivenObjects:           []client.Object{sale, greeting},
		ExpectTracks:           tracksGreeting,
		ExpectCreates:          []client.Object{page},
		ExpectStatusUpdates:    []client.Object{shownNow},
		ExpectEvents: []rtesting.Event{
			rtesting.NewEvent(sale, scheme, corev1.EventTypeNormal, "Created", `Created ConfigMap "sale-page"`),
			rtesting.NewEvent(sale, scheme, corev1.EventTypeNormal, "StatusUpdated", "Updated status"),
		},
	},
	"only requeues": {
		Request:                reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(sale)},
		Now:                    today.Add(23 * time.Hour),
		StatusSubResourceTypes: []client.Object{sale},
		GivenObjects:           []client.Object{shownNow, greeting, page},
		ExpectTracks:           tracksGreeting,
		ExpectedResult:         reconcilers.Result{RequeueAfter: time.Hour},
	},
}

// endregion
