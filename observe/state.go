// SPDX-License-Identifier: Apache-2.0

package observe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// State describes whether an object has reached the state that its spec describes.
type State struct {
	// Generation is metadata.generation, and ObservedGeneration is status.observedGeneration. They are 0 for kinds without
	// them.
	Generation, ObservedGeneration int64
	// Deleting reports whether the object is being deleted.
	Deleting bool
	// Ready is the status of the condition Ready, and "" without such a condition.
	Ready metav1.ConditionStatus
	// ReadyReason and ReadyMessage are the reason and the message of the condition Ready.
	ReadyReason, ReadyMessage string
}

// SpecChanged reports whether the event is the creation of an object or a change of its generation, which the API
// server increases when the spec changes.
func (c *Cause) SpecChanged() bool {
	switch c.Verb {
	case Created:
		return true
	case Updated:
		return c.before != nil && c.after != nil && c.before.GetGeneration() != c.after.GetGeneration()
	}
	return false
}

// ResourceVersion returns the resource version of the object after the event, or "" if it is unknown. It is the one of
// the last update, if several are merged.
func (c *Cause) ResourceVersion() string {
	if c.after == nil {
		return ""
	}
	return c.after.GetResourceVersion()
}

// State returns the state of the object after the event. It reports false if the object is unknown or deleted. Each
// call computes it.
func (c *Cause) State() (State, bool) {
	if c.Verb == Deleted {
		return State{}, false
	}
	return stateOf(c.after)
}

// State returns the state of the object in the answer of a write. It reports false for other calls, and if the write
// failed. Each call computes it.
func (c *Call) State() (State, bool) {
	if !c.IsWrite() || c.Verb == VerbDelete || c.DryRun || c.Err != nil {
		return State{}, false
	}
	return stateOf(c.after)
}

func stateOf(obj client.Object) (State, bool) {
	if obj == nil {
		return State{}, false
	}
	state := State{Generation: obj.GetGeneration(), Deleting: obj.GetDeletionTimestamp() != nil}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return state, true // an object that cannot be encoded has no status that others can read
	}
	state.ObservedGeneration, _, _ = unstructured.NestedInt64(content, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedFieldNoCopy(content, "status", "conditions")
	list, _ := conditions.([]any)
	for _, item := range list {
		if condition, ok := item.(map[string]any); ok && condition["type"] == "Ready" {
			status, _ := condition["status"].(string)
			state.Ready = metav1.ConditionStatus(status)
			state.ReadyReason, _ = condition["reason"].(string)
			state.ReadyMessage, _ = condition["message"].(string)
		}
	}
	return state, true
}

// SetObjects sets the object before and after the event, for tests of listeners. A missing object is nil. The objects
// must not be changed afterwards.
func (c *Cause) SetObjects(before, after client.Object) { c.before, c.after = before, after }

// SetObjects sets the object in the cache before a write, and in the answer, for tests of listeners. A missing object
// is nil. The objects must not be changed afterwards.
func (c *Call) SetObjects(before, after client.Object) { c.before, c.after = before, after }
