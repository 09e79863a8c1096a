// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"context"
	"html"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/docs"
	bannerv1 "trueup.dev/docs/internal/banner/v1"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
	rtesting "trueup.dev/testing"
	rtime "trueup.dev/time"
)

// The tutorial on testing begins with the reconciler in this file, which has bugs. It ends with the one in
// testing_test.go, which has the same names and so is in another package.

// region testing-untested
var textStasher = reconcilers.NewStasher[string]("docs.trueup.dev/text")

func BannerReconciler(c reconcilers.Config) *reconcilers.ResourceReconciler[*bannerv1.Banner] {
	return &reconcilers.ResourceReconciler[*bannerv1.Banner]{
		Reconciler: reconcilers.Sequence[*bannerv1.Banner]{TextReconciler(), LapseReconciler(), PageReconciler()},
		Config:     c,
	}
}

// TextReconciler finds the text.
func TextReconciler() reconcilers.SubReconciler[*bannerv1.Banner] {
	return &reconcilers.SyncReconciler[*bannerv1.Banner]{
		Name: "Text",
		Sync: func(ctx context.Context, banner *bannerv1.Banner) error {
			found := &corev1.ConfigMap{}
			key := client.ObjectKey{Namespace: banner.Namespace, Name: banner.Spec.TextFrom}
			if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, found); err != nil {
				return err
			}
			textStasher.Store(ctx, found.Data["text"])
			return nil
		},
	}
}

// LapseReconciler requeues until the banner lapses, and then clears the text.
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

// PageReconciler writes the text, unless it is empty, to a ConfigMap that web servers read.
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
					Labels: map[string]string{"docs.trueup.dev/until": banner.Spec.Until.UTC().Format(time.RFC3339)},
				},
				Data: map[string]string{"banner.html": "<p>" + html.EscapeString(text) + "</p>"},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Labels, current.Data = desired.Labels, desired.Data
		},
		ReflectChildStatusOnParent: func(ctx context.Context, banner *bannerv1.Banner, page *corev1.ConfigMap, err error) {
			switch {
			case err != nil: // the name is in use, or the API server rejects the page
				banner.Status.MarkNotShown(ctx, "PageFailed", "%s", err)
			case page != nil:
				banner.Status.MarkShown(ctx)
			}
		},
	}
}

// endregion

// The tests that fail: TestTutorial runs them, and compares their output with the tutorial.

func forTheTutorial(t *testing.T) {
	t.Helper()
	if os.Getenv(docs.TutorialVariable) == "" {
		t.Skip("fails on purpose")
	}
}

var scheme = bannerv1.NewScheme()

func TestBannerReconciler(t *testing.T) {
	forTheTutorial(t)
	// region testing-factory
	factory := func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return BannerReconciler(c)
	}
	// endregion
	docs.FirstCase(t, factory)
}

func TestTextReconciler(t *testing.T) {
	forTheTutorial(t)
	docs.TextCases.Run(t, scheme, docs.Step(TextReconciler))
}

func TestTextReconcilerWiring(t *testing.T) {
	forTheTutorial(t)
	docs.WiringCases.Run(t, scheme, docs.Step(TextReconciler))
}

func TestPageReconcilerOnCluster(t *testing.T) {
	forTheTutorial(t)
	writes := docs.PageCases["writes the page"]
	writes.ExpectCreates = []client.Object{page}
	env := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{bannerv1.CRDs}})
	rtesting.SubReconcilerTests[*bannerv1.Banner]{"writes the page": writes}.Run(
		t, scheme, docs.Step(PageReconciler), rtesting.OnCluster(env.RESTConfig()),
	)
}

// region testing-page
var page = &corev1.ConfigMap{
	ObjectMeta: metav1.ObjectMeta{
		Name:      "sale-page",
		Namespace: "shop",
		Labels:    map[string]string{"docs.trueup.dev/until": "2026-05-02T09:00:00Z"},
		OwnerReferences: []metav1.OwnerReference{
			{
				APIVersion:         "docs.trueup.dev/v1",
				Kind:               "Banner",
				Name:               "sale",
				UID:                "sale-uid",
				Controller:         new(true),
				BlockOwnerDeletion: new(true),
			},
		},
	},
	Data: map[string]string{"banner.html": "<p>Bread &amp; butter</p>"},
}

// endregion
