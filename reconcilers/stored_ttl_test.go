// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAdmissionMemory_Lifetime(t *testing.T) {
	asked := func() *corev1.ConfigMap { return &corev1.ConfigMap{Data: map[string]string{"a": "asked"}} }
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{UID: "uid"}, Data: map[string]string{"a": "asked", "b": "added"},
	}
	merge := func(current, desired *corev1.ConfigMap) { current.Data = desired.Data }
	knows := func(m *admissionMemory[*corev1.ConfigMap]) bool {
		return m.expected("uid", asked()).Data["b"] == "added"
	}

	for name, tc := range map[string]struct {
		reason string
		do     func(t *testing.T, m *admissionMemory[*corev1.ConfigMap])
		want   bool
	}{
		"unused": {
			reason: "entries of deleted objects must expire",
			do:     func(*testing.T, *admissionMemory[*corev1.ConfigMap]) { time.Sleep(admissionMemoryTTL + time.Minute) },
			want:   false,
		},
		"in use": {
			reason: "an object that is reconciled occasionally must not be written every hour",
			do: func(t *testing.T, m *admissionMemory[*corev1.ConfigMap]) {
				for range 5 {
					time.Sleep(admissionMemoryTTL * 3 / 4)
					if !knows(m) {
						t.Fatal("the entry expired although it was used")
					}
				}
			},
			want: true,
		},
		"limited": {
			reason: "the webhook that keeps a value may be gone",
			do: func(t *testing.T, m *admissionMemory[*corev1.ConfigMap]) {
				m.limit("uid")
				for range 3 {
					time.Sleep(keptFor / 4)
					if !knows(m) {
						t.Fatal("the entry expired early")
					}
				}
				time.Sleep(keptFor / 2)
				if !m.wasKept("uid", asked()) {
					t.Error("it is not known that the same was requested before")
				}
			},
			want: false,
		},
		"forgotten": {
			reason: "the entry of a deleted object is removed",
			do:     func(_ *testing.T, m *admissionMemory[*corev1.ConfigMap]) { m.forget("uid") },
			want:   false,
		},
		"the server stores the object unchanged": {
			reason: "the server no longer changes the object, so earlier changes must not be expected",
			do: func(t *testing.T, m *admissionMemory[*corev1.ConfigMap]) {
				plain := asked()
				plain.UID = "uid"
				if err := m.learn(asked(), plain, merge); err != nil {
					t.Fatal(err)
				}
			},
			want: false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &admissionMemory[*corev1.ConfigMap]{}
				if err := m.learn(asked(), stored, merge); err != nil {
					t.Fatal(err)
				}
				if !knows(m) {
					t.Fatal("no entry was recorded")
				}
				tc.do(t, m)
				if got := knows(m); got != tc.want {
					t.Errorf("known = %t, want %t: %s", got, tc.want, tc.reason)
				}
			})
		})
	}

	t.Run("nothing added", func(t *testing.T) {
		m := &admissionMemory[*corev1.ConfigMap]{}
		plain := asked()
		plain.UID = "uid"
		if err := m.learn(asked(), plain, merge); err != nil {
			t.Fatal(err)
		}
		if n := m.store().Len(); n != 0 {
			t.Errorf("%d entries, want none: the server does not change the object", n)
		}
	})
}
