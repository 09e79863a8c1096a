// SPDX-License-Identifier: Apache-2.0

package difference_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"trueup.dev/internal/difference"
)

func TestBetween(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment)) any {
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{
					{
						Name: "app", Image: "app:1", Args: []string{"a", "b"},
						Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
					},
					{Name: "proxy", Image: "proxy:1"},
				},
				Tolerations: []corev1.Toleration{{Key: "a"}, {Key: "b"}},
			}}},
		}
		change(d)
		return d
	}
	now := metav1.Now()
	conditions := func(conditions ...metav1.Condition) any { return &fixtureConditions{Conditions: conditions} }
	condition := func(
		kind string, status metav1.ConditionStatus, reason, message string, generation int64,
	) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
			LastTransitionTime: now,
		}
	}
	content := func(spec map[string]any, status ...any) any {
		return &unstructured.Unstructured{
			Object: map[string]any{"spec": spec, "status": map[string]any{"conditions": status}},
		}
	}
	for name, tt := range map[string]struct {
		before, after any
		want          []string
	}{
		"nothing": {before: deployment(func(*appsv1.Deployment) {}), after: deployment(func(*appsv1.Deployment) {})},
		"fields": {
			before: deployment(func(*appsv1.Deployment) {}),
			after: deployment(func(d *appsv1.Deployment) {
				pod := &d.Spec.Template.Spec
				d.Labels["app"], d.Labels["tier"] = "shop", "front"
				d.Spec.Replicas = new(int32(0))
				d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1))}
				pod.Containers[0].Image = "app:2"
				pod.Containers[0].Args[1] = "c"
				pod.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2")
				pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Key: "c"})
				pod.SecurityContext = &corev1.PodSecurityContext{}
			}),
			want: []string{
				"metadata.labels[app]", "metadata.labels[tier]", "spec.replicas",
				"spec.template.spec.containers[app].args[1]", "spec.template.spec.containers[app].image",
				"spec.template.spec.containers[app].resources.limits[cpu]",
				"spec.template.spec.securityContext", "spec.template.spec.tolerations[2]", "spec.strategy.rollingUpdate",
			},
		},
		"items": {
			before: deployment(func(*appsv1.Deployment) {}),
			after: deployment(func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "sidecar"}, {Name: "proxy", Image: "proxy:2"}}
			}),
			want: []string{
				"spec.template.spec.containers[app]", "spec.template.spec.containers[proxy].image",
				"spec.template.spec.containers[sidecar]",
			},
		},
		"order": {
			before: deployment(func(*appsv1.Deployment) {}),
			after: deployment(func(d *appsv1.Deployment) {
				containers := d.Spec.Template.Spec.Containers
				containers[0], containers[1] = containers[1], containers[0]
			}),
			want: []string{"spec.template.spec.containers: order"},
		},
		"equal quantities": {
			before: deployment(func(*appsv1.Deployment) {}),
			after: deployment(func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("1000m")
			}),
		},
		"conditions": {
			before: conditions(
				condition("Gone", "True", "Was", "", 1), condition("Ready", "False", "Broken", "a secret", 1),
				condition("Same", "True", "Fine", "", 1), condition("Synced", "True", "Fine", "one", 1),
			),
			after: conditions(
				condition("New", "Unknown", "Initializing", "", 2), condition("Ready", "True", "Ready", "", 2),
				condition("Same", "True", "Fine", "", 2), condition("Synced", "True", "Checked", "two", 2),
			),
			want: []string{
				"conditions[Gone]: removed, status True, reason Was",
				"conditions[Ready]: status False→True, reason Broken→Ready, message",
				"conditions[Same]: observedGeneration", "conditions[Synced]: reason Fine→Checked, message",
				"conditions[New]: added, status Unknown, reason Initializing",
			},
		},
		"first conditions": {
			before: conditions(), after: conditions(condition("Ready", "True", "Ready", "", 2)),
			want: []string{"conditions[Ready]: added, status True, reason Ready"},
		},
		"unstructured": {
			before: content(
				map[string]any{"replicas": int64(1), "list": []any{map[string]any{"name": "a", "x": int64(1)}}},
				map[string]any{"type": "Ready", "status": "False", "reason": "Broken"},
			),
			after: content(
				map[string]any{"replicas": int64(2), "list": []any{map[string]any{"name": "a", "x": int64(2)}}, "a.b": "c"},
				map[string]any{"type": "Ready", "status": "True", "reason": "Ready"},
			),
			want: []string{
				"spec[a.b]", "spec.list[a].x", "spec.replicas", "status.conditions[Ready]: status False→True, reason Broken→Ready",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := difference.Paths(difference.Between(tt.before, tt.after))
			slices.Sort(tt.want)
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("unexpected paths (-want +got):\n%s", diff)
			}
		})
	}
}

type fixtureConditions struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func TestLines(t *testing.T) {
	before := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "a", Hostname: "https://a/?b=1&c=<2>"}}
	before.Status.Conditions = []corev1.PodCondition{
		{Type: "Ready", Status: "False", Reason: "Starting", Message: "0 of 1"}, {Type: "Other", Status: "True"},
	}
	after := before.DeepCopy()
	after.Spec.NodeName, after.Spec.Hostname = "", strings.Repeat("ä", 1024)
	after.Status.Conditions[0].Message, after.Status.Conditions[1].Status = "1 of 1", "False"
	want := []string{
		`spec.nodeName: "a" → ""`,
		`spec.hostname: "https://a/?b=1&c=<2>" → "` + strings.Repeat("ä", (1024-len(`"…`))/2) + "…",
		`status.conditions[Ready]: message: "0 of 1" → "1 of 1"`,
		"status.conditions[Other]: status True→False",
	}
	if diff := cmp.Diff(want, difference.Lines(difference.Between(before, after))); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
