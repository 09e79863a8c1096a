// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

// region composing-tree
func WebsiteReconciler(c reconcilers.Config) *reconcilers.ResourceReconciler[*websitev1.Website] {
	return &reconcilers.ResourceReconciler[*websitev1.Website]{
		Reconciler: reconcilers.Sequence[*websitev1.Website]{
			RenderReconciler(),
			PagesReconciler(),
			TranslationsReconciler(),
		},
		Config: c,
	}
}

// endregion

func setUp(ctx context.Context, mgr ctrl.Manager) error {
	// region composing-setup
	c := reconcilers.NewConfig(mgr, &websitev1.Website{}, 10*time.Hour)
	if err := WebsiteReconciler(c).SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	// endregion
	return nil
}

// region composing-stash
var renderedStasher = reconcilers.NewStasher[map[string]string]("rendered")

func RenderReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Name: "Render",
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			files := map[string]string{}
			for _, page := range site.Spec.Pages {
				files[page.Name+".html"] = "<h1>" + page.Title + "</h1>"
			}
			renderedStasher.Store(ctx, files) // for the reconcilers that follow
			return nil
		},
	}
}

// endregion

func PagesReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "Pages",
		DesiredChild: func(ctx context.Context, site *websitev1.Website) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-pages"},
				Data:       renderedStasher.RetrieveOrDie(ctx),
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParent: func(ctx context.Context, site *websitev1.Website, _ *corev1.ConfigMap, err error) {
			if err != nil { // the name is in use, or the API server rejects the object
				site.Status.ConditionManager(ctx).MarkFalse(
					websitev1.ConditionContentReady, string(apierrs.ReasonForError(err)), "%s", err,
				)
			}
		},
	}
}

// region composing-flow
func TranslationsReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	cursor := reconcilers.CursorStasher[websitev1.Language]()
	return &reconcilers.IfThen[*websitev1.Website]{
		If: func(_ context.Context, site *websitev1.Website) bool {
			return len(site.Spec.Languages) > 0
		},
		Then: &reconcilers.ForEach[*websitev1.Website, websitev1.Language]{
			Items: func(_ context.Context, site *websitev1.Website) ([]websitev1.Language, error) {
				return site.Spec.Languages, nil
			},
			Reconciler: &reconcilers.SyncReconciler[*websitev1.Website]{
				Name: "Translation",
				Sync: func(ctx context.Context, _ *websitev1.Website) error {
					language := cursor.RetrieveOrDie(ctx)
					fmt.Printf("translation %d of %d: %s\n", language.Index+1, language.Length, language.Item.Code)
					return nil
				},
			},
		},
	}
}

// endregion

func Example_composing() {
	site := newSite()
	site.Spec.Languages = []websitev1.Language{{Code: "de"}, {Code: "fr"}}
	root := WebsiteReconciler(newCluster(site))
	if _, err := root.Reconcile(context.Background(), requestFor(site)); err != nil {
		fmt.Println(err)
	}
	_ = setUp
	// Output:
	// event: Normal Created: Created ConfigMap "bakery-pages"
	// translation 1 of 2: de
	// translation 2 of 2: fr
	// event: Normal StatusUpdated: Updated status
}

// region composing-advice
func Measured(
	r reconcilers.SubReconciler[*websitev1.Website], observe func(time.Duration),
) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.Advice[*websitev1.Website]{
		Reconciler: r,
		Around: func(
			ctx context.Context, site *websitev1.Website, r reconcilers.SubReconciler[*websitev1.Website],
		) (reconcilers.Result, error) {
			start := time.Now()
			defer func() { observe(time.Since(start)) }()
			return r.Reconcile(ctx, site)
		},
	}
}

// endregion

func Example_advice() {
	reconcileOnce(newCluster(newSite()), Measured(RenderReconciler(), func(took time.Duration) {
		fmt.Println("measured:", took >= 0)
	}))
	// Output:
	// measured: true
}

// region composing-always
func Independent() reconcilers.SubReconciler[*websitev1.Website] {
	return reconcilers.Always[*websitev1.Website]{
		SitemapReconciler(), // a broken sitemap
		FeedReconciler(),    // does not block the feed
	}
}

// endregion

func SitemapReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Sync: func(context.Context, *websitev1.Website) error { return fmt.Errorf("no sitemap today") },
	}
}

func FeedReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Sync: func(context.Context, *websitev1.Website) error {
			fmt.Println("feed written")
			return nil
		},
	}
}

func Example_always() {
	reconcileOnce(newCluster(newSite()), Independent())
	// Output:
	// feed written
	// error: no sitemap today
}

func Example_validation() {
	// region composing-validate
	root := &reconcilers.ResourceReconciler[*websitev1.Website]{
		Reconciler: reconcilers.Sequence[*websitev1.Website]{
			&reconcilers.SyncReconciler[*websitev1.Website]{Name: "Render"},
			&reconcilers.WithFinalizer[*websitev1.Website]{Name: "Record"},
		},
	}
	err := root.Validate(validation.WithRecursive(context.Background()))
	// endregion
	fmt.Println(strings.ReplaceAll(err.Error(), ": ", ":\n"))
	// Output:
	// ResourceReconciler "WebsiteResourceReconciler" must have a valid Reconciler:
	// Sequence must have a valid Sequence[0]:
	// SyncReconciler "Render" must implement Sync or SyncWithResult
}
