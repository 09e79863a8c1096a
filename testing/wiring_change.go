// SPDX-License-Identifier: Apache-2.0

package testing

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change is something that happens to an object and that those who watch it are told.
type Change string

// The changes that watches are tried with.
const (
	// Created is a new object.
	Created Change = "created"
	// SpecChanged is a change of the spec, or of whatever a kind has beside its metadata and its status. It changes the
	// generation too, but for kinds that have none, such as ConfigMap and Secret: a predicate that compares generations
	// never lets it pass for these.
	SpecChanged Change = "spec changed"
	// StatusChanged is a change of the status, or of anything else that changes neither the generation nor labels and
	// annotations.
	StatusChanged Change = "status changed"
	// LabelsChanged is a change of labels.
	LabelsChanged Change = "labels changed"
	// AnnotationsChanged is a change of annotations.
	AnnotationsChanged Change = "annotations changed"
	// Resynced is no change at all: caches tell of each object from time to time. References that are tracked live on
	// that.
	Resynced Change = "resynced"
	// DeletionRequested is a deletion that has to wait for finalizers.
	DeletionRequested Change = "deletion requested"
	// Deleted is the end of an object.
	Deleted Change = "deleted"
)

// allChanges are all there are, in the order of the life of an object.
var allChanges = []Change{
	Created, SpecChanged, StatusChanged, LabelsChanged, AnnotationsChanged, Resynced, DeletionRequested, Deleted,
}

// tell tells a handler of a change of an object.
func (c Change) tell(handler toolscache.ResourceEventHandler, obj client.Object, hasGeneration bool) {
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

// apply makes an object what it is after an update.
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

// withEntry returns a map with one more entry.
func withEntry(entries map[string]string) map[string]string {
	more := map[string]string{"wiring.trueup.dev/changed": "true"}
	for key, value := range entries {
		more[key] = value
	}
	return more
}
