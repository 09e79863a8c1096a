// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/nilcheck"
	"trueup.dev/internal/objectstatus"
)

// objectStatus is the part of a status that has a conventional meaning.
type objectStatus struct {
	observed   int64
	conditions []metav1.Condition
}

// ready reports whether the condition Ready is true for a generation.
func (s objectStatus) ready(generation int64) bool {
	c := meta.FindStatusCondition(s.conditions, "Ready")
	return c != nil && c.Status == metav1.ConditionTrue &&
		(c.ObservedGeneration == 0 || c.ObservedGeneration == generation)
}

// unready reports whether the condition Ready is known not to be true for a generation. Other conditions may then be of
// an earlier generation: the controller could not determine them.
func (s objectStatus) unready(generation int64) bool {
	c := meta.FindStatusCondition(s.conditions, "Ready")
	return c != nil && c.Status != metav1.ConditionTrue && c.ObservedGeneration == generation
}

// statusOf returns the status of an object.
func statusOf(obj client.Object) objectStatus {
	if nilcheck.IsNil(obj) {
		return objectStatus{}
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return untypedStatus(u)
	}
	fields := objectstatus.Of(obj)
	s := objectStatus{conditions: fields.ReadConditions(obj)}
	if observed := fields.ObservedGeneration(obj); observed != nil {
		s.observed = *observed
	}
	return s
}

func untypedStatus(u *unstructured.Unstructured) objectStatus {
	s := objectStatus{}
	s.observed, _, _ = unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		condition := metav1.Condition{}
		if content, ok := item.(map[string]any); ok &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(content, &condition) == nil {
			s.conditions = append(s.conditions, condition)
		}
	}
	return s
}
