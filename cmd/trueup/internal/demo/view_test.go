// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
)

// A site whose status is Ready is only ready if all of its children are.
func TestPending(t *testing.T) {
	tests := map[string]struct {
		change func(*view)
		want   string
	}{
		"ready": {change: func(*view) {}},
		"new": {
			change: func(v *view) { v.site.Status = websitev1.WebsiteStatus{} },
			want:   "waiting for the controller",
		},
		"a new spec": {
			change: func(v *view) { v.site.Generation++ },
			want:   "the controller has not observed the latest spec",
		},
		"on its way": {
			change: func(v *view) {
				status := v.site.Status.ConditionManager(t.Context())
				status.MarkUnknown(websitev1.ConditionServiceReady, "NoAddress", "")
				status.MarkFalse(websitev1.ConditionContentReady, "ThemeNotFound", "ConfigMap %q does not exist", "paper")
			},
			want: `content ✗  deployment ✓  service …  record ✓  (ThemeNotFound: ConfigMap "paper" does not exist)`,
		},
		"a language is missing": {
			change: func(v *view) { v.configMaps = v.configMaps[1:] },
			want:   "its status is Ready, but it has 1 ConfigMap instead of 2",
		},
		"no Deployment": {
			change: func(v *view) { v.deployment = nil },
			want:   "its status is Ready, but it has no Deployment",
		},
		"an old rollout": {
			change: func(v *view) { v.deployment.Generation++ },
			want:   "its status is Ready, but its Deployment is not ready",
		},
		"servers missing": {
			change: func(v *view) { v.deployment.Status.AvailableReplicas = 0 },
			want:   "its status is Ready, but its Deployment is not ready",
		},
		"no Service": {
			change: func(v *view) { v.service = nil },
			want:   "its status is Ready, but it has no Service with an address",
		},
		"no record": {
			change: func(v *view) { v.record = nil },
			want:   "its status is Ready, but shop.example.com does not resolve to 10.0.0.1",
		},
		"an old record": {
			change: func(v *view) { v.record.Target = "10.0.0.2" },
			want:   "its status is Ready, but shop.example.com does not resolve to 10.0.0.1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := &view{
				site: &websitev1.Website{
					ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 2},
					Spec:       websitev1.WebsiteSpec{Domain: "shop.example.com", Languages: []websitev1.Language{{Code: "de"}}},
				},
				configMaps: make([]corev1.ConfigMap, 2),
				deployment: &appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Generation: 3},
					Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1))},
					Status:     appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
				},
				service: &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}},
				record:  &dns.Record{Name: "shop.example.com", Target: "10.0.0.1"},
			}
			v.site.Status.ObservedGeneration = 2
			status := v.site.Status.ConditionManager(t.Context())
			for _, condition := range []string{
				websitev1.ConditionContentReady, websitev1.ConditionDeploymentReady, websitev1.ConditionServiceReady,
				websitev1.ConditionRecordReady,
			} {
				status.MarkTrue(condition, "Done", "")
			}
			tc.change(v)
			if got := v.pending(); got != tc.want {
				t.Errorf("pending() = %q, want %q", got, tc.want)
			}
		})
	}
}
