// SPDX-License-Identifier: Apache-2.0

package state

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/internal/objects/objectstatus"
)

// Status is the part of a status that has a conventional meaning.
type Status struct {
	Observed   int64
	Conditions []metav1.Condition
}

// Ready reports whether the condition Ready is true for a generation.
func (s Status) Ready(generation int64) bool {
	c := meta.FindStatusCondition(s.Conditions, "Ready")
	return c != nil && c.Status == metav1.ConditionTrue &&
		(c.ObservedGeneration == 0 || c.ObservedGeneration == generation)
}

// Unready reports whether the condition Ready is known not to be true for a generation. Other conditions may then be of
// an earlier generation: the controller could not determine them.
func (s Status) Unready(generation int64) bool {
	c := meta.FindStatusCondition(s.Conditions, "Ready")
	return c != nil && c.Status != metav1.ConditionTrue && c.ObservedGeneration == generation
}

// StatusOf returns the status of an object.
func StatusOf(obj client.Object) Status {
	if nilcheck.IsNil(obj) {
		return Status{}
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return untypedStatus(u)
	}
	fields := objectstatus.Of(obj)
	s := Status{Conditions: fields.ReadConditions(obj)}
	if observed := fields.ObservedGeneration(obj); observed != nil {
		s.Observed = *observed
	}
	return s
}

func untypedStatus(u *unstructured.Unstructured) Status {
	s := Status{}
	s.Observed, _, _ = unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		condition := metav1.Condition{}
		if content, ok := item.(map[string]any); ok &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(content, &condition) == nil {
			s.Conditions = append(s.Conditions, condition)
		}
	}
	return s
}
