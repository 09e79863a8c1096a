// SPDX-License-Identifier: Apache-2.0

package phrase

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type generic[T any] struct{ corev1.ConfigMap }

// TestDescribe names an object by its kind or, without one, by its type as code has it, without packages.
func TestDescribe(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "a"}
	plain := corev1.ConfigMap{ObjectMeta: meta}
	of := plain
	of.Kind = "Settings"
	for want, obj := range map[string]client.Object{
		"ConfigMap default/a":                &plain,
		"Settings default/a":                 &of,
		"generic[Secret] default/a":          &generic[corev1.Secret]{plain},
		"generic[*Secret] default/a":         &generic[*corev1.Secret]{plain},
		"generic[map[string]Pod] default/a":  &generic[map[string]corev1.Pod]{plain},
		"generic[generic[Secret]] default/a": &generic[generic[corev1.Secret]]{plain},
		"generic[int] default/a":             &generic[int]{plain},
	} {
		if got := Describe(obj); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
