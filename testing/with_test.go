// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWith(t *testing.T) {
	base := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "1"}}, Data: map[string]string{"k": "v"},
	}
	unchanged := base.DeepCopy()

	got := With(base,
		func(cm *corev1.ConfigMap) { cm.Labels["l"] = "2" },
		func(cm *corev1.ConfigMap) { cm.Labels["l"] += "3" },
	)
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "23"}}, Data: map[string]string{"k": "v"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("derived (-want +got):\n%s", diff)
	}

	clone := With(base)
	clone.Data["k"] = "changed"
	if diff := cmp.Diff(unchanged, base); diff != "" {
		t.Errorf("the base has changed (-before +after):\n%s", diff)
	}
}

// All that has a deep copy can be a base.
func TestWithOtherTypes(t *testing.T) {
	u := With(withMetadata(map[string]any{"name": "a"}), func(u *unstructured.Unstructured) { u.SetName("b") })
	if u.GetName() != "b" {
		t.Errorf("unstructured: %v", u)
	}
	spec := With(&corev1.PodSpec{NodeName: "a"}, func(s *corev1.PodSpec) { s.NodeName = "b" })
	if spec.NodeName != "b" {
		t.Errorf("a part of an object: %v", spec)
	}
}
