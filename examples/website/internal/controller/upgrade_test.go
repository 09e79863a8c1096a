// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/examples/website/internal/controller"
	"trueup.dev/examples/website/internal/manifest"
	"trueup.dev/reconcilers"
)

// firstRelease is the controller of the first release: it kept the style sheet in a ConfigMap of its own.
func firstRelease(c reconcilers.Config, records dns.Provider) *reconcilers.ResourceReconciler[*websitev1.Website] {
	return &reconcilers.ResourceReconciler[*websitev1.Website]{
		Name: "Website",
		Reconciler: reconcilers.Sequence[*websitev1.Website]{
			controller.ThemeReconciler(),
			controller.ContentReconciler(),
			controller.LanguagesReconciler(),
			styleReconciler(),
			controller.DeploymentReconciler(),
			controller.ServiceReconciler(),
			controller.RecordReconciler(records, time.Minute),
		},
		Config: c,
	}
}

func styleReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "Style",
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: manifest.FormerStyleName(site)},
				Data:       map[string]string{"style.css": "h1 {}"},
			}, nil
		},
		OurChild: func(site *websitev1.Website, child *corev1.ConfigMap) bool {
			return child.Name == manifest.FormerStyleName(site)
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *websitev1.Website, _ *corev1.ConfigMap, err error,
		) error {
			return err
		},
	}
}

// The present version takes over from the first release at any point, and the first release takes over again.
func TestUpgrade_fromFirstRelease(t *testing.T) {
	if raceDetector || testing.Short() {
		t.Skip("tries thousands of schedules, without the race detector: with -short, TestConverge_lifecycle remains")
	}
	t.Parallel()
	current := siteScenario(t)
	current.Steps = converge.Lifecycle(inDefault(newSite("shop")), func(site *websitev1.Website) {
		site.Spec.Domain = "store.example.com"
	})
	old := current
	old.Setup = func(mgr ctrl.Manager) error {
		c := reconcilers.NewConfig(mgr, &websitev1.Website{}, 10*time.Hour)
		return firstRelease(c, cloudRecords{converge.EnvOf(mgr).Cloud}).SetupWithManager(t.Context(), mgr)
	}
	converge.Upgrade(t, old, current)
}
