// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change is a change of an object.
type Change string

// The changes that each watch is probed with. They are untyped, so that constants of other types can have their values.
const (
	Created = "created"
	// SpecChanged increments the generation of kinds that have one.
	SpecChanged = "spec changed"
	// StatusChanged changes the resource version only.
	StatusChanged      = "status changed"
	LabelsChanged      = "labels changed"
	AnnotationsChanged = "annotations changed"
	// Resynced changes nothing.
	Resynced = "resynced"
	// DeletionRequested sets the deletion timestamp.
	DeletionRequested = "deletion requested"
	Deleted           = "deleted"
)

// Changes are all changes, in the order of the life of an object.
var Changes = []Change{
	Created, SpecChanged, StatusChanged, LabelsChanged, AnnotationsChanged, Resynced, DeletionRequested, Deleted,
}

// deliver sends a handler the event of a change of an object.
func (c Change) deliver(handler toolscache.ResourceEventHandler, obj client.Object, hasGeneration bool) {
	switch c {
	case Created:
		handler.OnAdd(obj, false)
	case Deleted:
		handler.OnDelete(obj)
	default:
		changed := obj.DeepCopyObject().(client.Object)
		c.apply(changed, hasGeneration)
		handler.OnUpdate(obj, changed)
	}
}

// apply changes an object as an update does.
func (c Change) apply(obj client.Object, hasGeneration bool) {
	if c == Resynced {
		return
	}
	obj.SetResourceVersion(obj.GetResourceVersion() + "0")
	switch c {
	case LabelsChanged:
		obj.SetLabels(withEntry(obj.GetLabels()))
	case AnnotationsChanged:
		obj.SetAnnotations(withEntry(obj.GetAnnotations()))
	case DeletionRequested:
		obj.SetDeletionTimestamp(new(metav1.Now()))
	}
	if hasGeneration && (c == SpecChanged || c == DeletionRequested) {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
}

// withEntry returns a map with an additional entry.
func withEntry(entries map[string]string) map[string]string {
	added := map[string]string{"wiring.trueup.dev/changed": "true"}
	for key, value := range entries {
		added[key] = value
	}
	return added
}
