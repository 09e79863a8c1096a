// SPDX-License-Identifier: Apache-2.0

package objectstatus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	status struct {
		ObservedGeneration int64
		Conditions         []metav1.Condition
	}
	generation  int64
	conditions  []metav1.Condition
	namedStatus struct {
		ObservedGeneration generation
		Conditions         conditions
	}
	otherStatus struct {
		ObservedGeneration string
		Conditions         []corev1.PodCondition
	}

	plain struct {
		corev1.ConfigMap
		Status status
	}
	pointer struct {
		corev1.ConfigMap
		Status *status
	}
	embedded struct {
		corev1.ConfigMap
		Status struct{ *Part }
	}
	Part  struct{ Conditions []metav1.Condition }
	named struct {
		corev1.ConfigMap
		Status namedStatus
	}
	other struct {
		corev1.ConfigMap
		Status otherStatus
	}
	text struct {
		corev1.ConfigMap
		Status string
	}
	inherited struct{ *plain }
	byValue   struct{ *corev1.ConfigMap }
)

func TestFields(t *testing.T) {
	ready := []metav1.Condition{{Type: "Ready"}}
	const all, read, none = "all", "read", "none"
	for name, tc := range map[string]struct {
		obj        client.Object
		generation bool
		conditions string // all: can be changed, read: have a named type
		has        bool   // the Go type has conditions
		valid      bool   // there is a status
	}{
		"plain":            {&plain{Status: status{1, ready}}, true, all, true, true},
		"a pointer":        {&pointer{Status: &status{1, ready}}, true, all, true, true},
		"a nil pointer":    {&pointer{}, false, none, true, false},
		"embedded":         {&embedded{Status: struct{ *Part }{&Part{ready}}}, false, all, true, true},
		"embedded, nil":    {&embedded{}, false, none, true, true},
		"named types":      {&named{Status: namedStatus{1, ready}}, true, read, false, true},
		"other types":      {&other{Status: otherStatus{"1", []corev1.PodCondition{{}}}}, false, none, false, true},
		"no struct":        {&text{Status: "1"}, false, none, false, true},
		"an inherited one": {&inherited{&plain{Status: status{1, ready}}}, true, all, true, true},
		"inherited, nil":   {&inherited{}, false, none, true, false},
		"no status":        {&corev1.ConfigMap{}, false, none, false, false},
		"not a pointer":    {byValue{&corev1.ConfigMap{}}, false, none, false, false},
		"an unstructured":  {&unstructured.Unstructured{}, false, none, false, false},
		"of Kubernetes":    {&corev1.Pod{Status: corev1.PodStatus{ObservedGeneration: 1}}, true, none, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := Of(tc.obj)
			if got := f.Value(tc.obj); got.IsValid() != tc.valid || got.IsValid() && !got.CanAddr() {
				t.Errorf("status %v, want one: %t", got, tc.valid)
			}
			if got := f.ObservedGeneration(tc.obj); (got != nil) != tc.generation || got != nil && *got != 1 {
				t.Errorf("observedGeneration %v, want one: %t", got, tc.generation)
			}
			if got := f.HasConditions(); got != tc.has {
				t.Errorf("has conditions: %t, want %t", got, tc.has)
			}
			want := map[string][]metav1.Condition{all: ready, read: ready}[tc.conditions]
			if diff := cmp.Diff(want, f.ReadConditions(tc.obj)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			changeable := f.Conditions(tc.obj)
			if (changeable != nil) != (tc.conditions == all) {
				t.Fatalf("conditions to change %v, want %s", changeable, tc.conditions)
			}
			if changeable != nil {
				*changeable = nil
				if got := f.ReadConditions(tc.obj); got != nil {
					t.Errorf("conditions %v after they were removed", got)
				}
			}
		})
	}
}
