// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/external"
	"trueup.dev/observe"
	"trueup.dev/plan"
	"trueup.dev/reconcilers"
)

// CDN is a content delivery network.
type CDN interface {
	Purge(ctx context.Context, site string) error
}

// region announce
func PurgeReconciler(cdn CDN) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			if external.Announce(ctx, "purge the pages of %s", site.Name) {
				return nil
			}
			return cdn.Purge(ctx, site.Name)
		},
	}
}

// endregion

func setUpLanguages(ctx context.Context, mgr ctrl.Manager) error {
	c := reconcilers.NewConfig(mgr, &websitev1.Website{}, 0)
	pages := PagesReconciler().(*reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList])
	pages.OurChild = func(site *websitev1.Website, child *corev1.ConfigMap) bool {
		return child.Name == site.Name+"-pages"
	}
	root := &reconcilers.ResourceReconciler[*websitev1.Website]{
		Reconciler: reconcilers.Sequence[*websitev1.Website]{
			RenderReconciler(), pages, LanguagesReconciler(), PurgeReconciler(nil),
		},
		SkipStatusUpdate: true,
		Config:           c,
	}
	return root.SetupWithManager(ctx, mgr)
}

// mainWithPlan is a main function.
func mainWithPlan(scheme *runtime.Scheme) {
	// region main
	plan.Main(scheme, setUp) // before the program connects to a cluster
	// endregion
}

// region test
func PlanOf(ctx context.Context, cluster client.Client, name string) (string, error) {
	made, err := plan.Run(ctx, cluster, setUp, plan.Request{Namespace: "default", Name: name})
	if err != nil {
		return "", err
	}
	return made.Text(), nil
}

// endregion

func TestPlanGuide(t *testing.T) {
	mainWithPlan(newScheme()) // returns: the command of a test is not "plan"
	site := newSite()
	owned := func(name string, labels, data map[string]string) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, Labels: labels, UID: types.UID(name), CreationTimestamp: metav1.Unix(1, 0),
			},
			Data: data,
		}
		if err := ctrl.SetControllerReference(site, cm, newScheme()); err != nil {
			t.Fatal(err)
		}
		return cm
	}
	cluster := fake.NewClientBuilder().WithScheme(newScheme()).WithStatusSubresource(site).WithObjects(
		site, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		owned("bakery-pages", nil, map[string]string{"index.html": "<h1>Bakery</h1>"}),
		owned("bakery-de", map[string]string{languageLabel: "de"}, nil),
	).Build()
	planner, err := plan.New(t.Context(), cluster, setUpLanguages, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer planner.Close()
	made, err := planner.Plan(t.Context(), plan.Request{Namespace: "default", Name: site.Name})
	if err != nil {
		t.Fatal(err)
	}
	showPrinted(t, "plan.md", map[string]string{"plan": made.Text(), "summary": upgrade().Text()})

	text, err := PlanOf(t.Context(), cluster, "missing")
	if diff := cmp.Diff("No changes.\n", text); diff != "" || err != nil {
		t.Errorf("error %v, plan (-want +got):\n%s", err, diff)
	}
}

// upgrade is the sum of plans of an upgrade.
func upgrade() *plan.Summary {
	s := &plan.Summary{}
	for i := range 312 {
		s.Add(&plan.Plan{Changes: []plan.Change{{
			Action: plan.Update, Kind: "Deployment", Namespace: "default", Name: fmt.Sprintf("web-%d", i),
			Fields: []observe.Change{{
				Path: "spec.template.spec.containers[web].env[X]", After: `{"name":"X","value":"1"}`,
			}},
		}}})
	}
	return s
}
