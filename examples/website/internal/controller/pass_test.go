// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
	"trueup.dev/validation"
)

var shopKey = types.NamespacedName{Namespace: "default", Name: "shop"}

func shop(change func(*websitev1.Website)) *websitev1.Website {
	site := &websitev1.Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: shopKey.Namespace, Name: shopKey.Name, UID: "1", Generation: 1},
		Spec: websitev1.WebsiteSpec{
			Domain: "shop.example.com", Image: "nginx", Replicas: new(int32(2)),
			Pages: []websitev1.Page{{Name: "index", Title: "Welcome"}},
		},
	}
	if change != nil {
		change(site)
	}
	return site
}

// pass runs one pass over the shop in a cluster without servers: nothing but what the reconciler does happens.
func pass(t *testing.T, objects ...client.Object) (reconcilers.Config, *dns.Directory) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, websitev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&websitev1.Website{}).Build()
	config := reconcilers.Config{
		Client: c, APIReader: c,
		Recorder: record.NewFakeRecorder(100),
		Tracker:  tracker.New(scheme, time.Hour),
	}
	records := dns.NewDirectory(t.TempDir())
	_, err := NewWebsiteReconciler(config, records, time.Minute).Reconcile(t.Context(), reconcilers.Request{NamespacedName: shopKey})
	if err != nil {
		t.Fatal(err)
	}
	return config, records
}

func TestPass_isValid(t *testing.T) {
	config, records := pass(t)
	if err := NewWebsiteReconciler(config, records, time.Minute).Validate(validation.WithRecursive(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestPass_tracksAThemeThatIsMissing(t *testing.T) {
	config, _ := pass(t, shop(func(site *websitev1.Website) {
		site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
	}))
	theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "paper"}}
	observers, err := config.Tracker.GetObservers(theme)
	if diff := cmp.Diff([]types.NamespacedName{shopKey}, observers); diff != "" || err != nil {
		t.Errorf("observers of the theme (-want +got), error %v:\n%s", err, diff)
	}
	var configMaps corev1.ConfigMapList
	if err := config.List(t.Context(), &configMaps); err != nil || len(configMaps.Items) != 0 {
		t.Errorf("without a theme, there are ConfigMaps: %v (error %v)", configMaps.Items, err)
	}
}

// The first pass makes all children; the Service of this cluster never gets an address, so there is nothing to publish.
func TestPass_publishesNothingWithoutAnAddress(t *testing.T) {
	config, records := pass(t, shop(nil))
	for _, child := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
		if err := config.Get(t.Context(), shopKey, child); err != nil {
			t.Error(err)
		}
	}
	var site websitev1.Website
	if err := config.Get(t.Context(), shopKey, &site); err != nil {
		t.Fatal(err)
	}
	for _, condition := range []string{websitev1.ConditionServiceReady, websitev1.ConditionRecordReady} {
		if c := site.Status.GetCondition(condition); c == nil || c.Status != metav1.ConditionUnknown || c.Reason != "NoAddress" {
			t.Errorf("%s = %+v, want Unknown, NoAddress", condition, c)
		}
	}
	if _, err := records.Lookup(t.Context(), "shop.example.com"); err == nil {
		t.Error("a record without an address was published")
	}
	if diff := cmp.Diff([]string{websitev1.Finalizer}, site.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
}

// A site on its way out is cleaned up, whatever has become of its theme.
func TestPass_finalizesWithoutATheme(t *testing.T) {
	config, _ := pass(t, shop(func(site *websitev1.Website) {
		site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
		site.Spec.Languages = []websitev1.Language{{Code: "de"}}
		site.Finalizers = []string{websitev1.Finalizer}
		site.DeletionTimestamp = new(metav1.Now())
	}))
	if err := config.Get(t.Context(), shopKey, &websitev1.Website{}); !apierrs.IsNotFound(err) {
		t.Errorf("the site is still there, or no telling: %v", err)
	}
}

func TestReflectRollout(t *testing.T) {
	const generation = 3
	settled := appsv1.DeploymentStatus{ObservedGeneration: generation, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2, ReadyReplicas: 2}
	tests := map[string]struct {
		change func(*appsv1.DeploymentStatus)
		want   metav1.ConditionStatus
		reason string
	}{
		"settled":                          {want: metav1.ConditionTrue, reason: "RolledOut"},
		"settled with an older generation": {change: func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = generation - 1 }, want: metav1.ConditionUnknown, reason: "RollingOut"},
		"pods with the old content are up": {change: func(s *appsv1.DeploymentStatus) { s.Replicas = 3 }, want: metav1.ConditionUnknown, reason: "RollingOut"},
		"pods with the new one are missing": {
			change: func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 1 }, want: metav1.ConditionUnknown, reason: "RollingOut",
		},
		"pods do not answer": {change: func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 0 }, want: metav1.ConditionUnknown, reason: "RollingOut"},
		"it has given up": {
			change: func(s *appsv1.DeploymentStatus) {
				s.AvailableReplicas = 0
				s.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "100% slow",
				}}
			},
			want: metav1.ConditionFalse, reason: "ProgressDeadlineExceeded",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			child := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Generation: generation},
				Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2))},
				Status:     *settled.DeepCopy(),
			}
			if tc.change != nil {
				tc.change(&child.Status)
			}
			site := shop(nil)
			reflectRollout(t.Context(), site, child)
			got := site.Status.GetCondition(websitev1.ConditionDeploymentReady)
			if got == nil || got.Status != tc.want || got.Reason != tc.reason {
				t.Errorf("DeploymentReady = %+v, want %s, %s", got, tc.want, tc.reason)
			}
			if tc.want == metav1.ConditionFalse && got.Message != "100% slow" {
				t.Errorf("message = %q, want the one of the Deployment", got.Message)
			}
		})
	}
}
