// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func BenchmarkCopyInto(b *testing.B) {
	pod := corev1.PodSpec{
		Containers:   []corev1.Container{{Name: "a", Env: []corev1.EnvVar{{Name: "b"}}}},
		NodeSelector: map[string]string{"c": "d"},
	}
	type reflected struct {
		Names  []string
		Labels map[string]string
		Size   apiresource.Quantity
		Since  metav1.Time
		Count  *int
	}
	value := reflected{
		Names:  []string{"a", "b"},
		Labels: map[string]string{"a": "b"},
		Size:   apiresource.MustParse("1Gi"),
		Since:  metav1.Now(),
		Count:  new(1),
	}
	b.Run("OwnMethod", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var out corev1.PodSpec
			copyInto(&pod, &out)
		}
	})
	b.Run("Reflection", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var out reflected
			copyInto(&value, &out)
		}
	})
}
