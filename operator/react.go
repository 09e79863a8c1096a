// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// React selects the changes of a resource for which handlers are called. Combine values with |.
type React int

// The changes to react to.
const (
	// ReactSpec selects changes of the desired state: a new generation. For kinds without generations, it selects
	// changes of all fields except metadata and status.
	ReactSpec React = 1 << iota
	// ReactLabels selects changes of labels.
	ReactLabels
	// ReactAnnotations selects changes of annotations.
	ReactAnnotations
	// ReactStatus selects changes of the status.
	ReactStatus
	// ReactAny selects every change.
	ReactAny
)

// differs reports whether two states of one resource differ in a selected field.
func (r React) differs(before, after client.Object) bool {
	if sameState(before, after) {
		return false
	}
	return r&ReactAny != 0 || r&ReactSpec != 0 && specDiffers(before, after) || r.metadataDiffers(before, after) ||
		r&ReactStatus != 0 && !reflect.DeepEqual(contentOf(before)["status"], contentOf(after)["status"])
}

func (r React) metadataCounts() bool {
	return r&(ReactLabels|ReactAnnotations) != 0
}

func (r React) metadataDiffers(before, after client.Object) bool {
	return r&ReactLabels != 0 && !maps.Equal(before.GetLabels(), after.GetLabels()) ||
		r&ReactAnnotations != 0 && !maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// supersedes reports whether a change replaces a retry. The status and other metadata do not count, because the
// failing handler itself may write them.
func (r React) supersedes(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() || isDeleting(before) != isDeleting(after) || specDiffers(before, after) ||
		r.metadataDiffers(before, after)
}

func specDiffers(before, after client.Object) bool {
	if before.GetGeneration() != 0 || after.GetGeneration() != 0 {
		return before.GetGeneration() != after.GetGeneration()
	}
	return !reflect.DeepEqual(specOf(before), specOf(after))
}

func isDeleting(obj client.Object) bool {
	return obj.GetDeletionTimestamp() != nil
}

// specOf returns all fields except metadata and status.
func specOf(obj client.Object) map[string]any {
	content := maps.Clone(contentOf(obj))
	for _, other := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, other)
	}
	return content
}

// contentOf returns the fields of an object. It returns nil if the object cannot be converted; then only differences
// in the metadata count.
func contentOf(obj client.Object) map[string]any {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent()
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
	}
	return content
}
