// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// React selects the changes of a resource that handlers are called for. Values are combined with |.
type React int

// What to react to.
const (
	// ReactSpec is for what users want of a resource: a new generation. For kinds without generations it is everything but
	// metadata and status.
	ReactSpec React = 1 << iota
	// ReactLabels is for labels.
	ReactLabels
	// ReactAnnotations is for annotations.
	ReactAnnotations
	// ReactStatus is for the status.
	ReactStatus
	// ReactAny is for every change, whatever it is.
	ReactAny
)

// differs tells whether there is a difference between two states of one resource that is worth a call.
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

// supersedes tells whether there is a difference that makes waiting for a retry pointless. Status and other metadata
// are not: it may be the failing handler itself that writes them.
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

// specOf is everything but metadata and status.
func specOf(obj client.Object) map[string]any {
	content := maps.Clone(contentOf(obj))
	for _, other := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, other)
	}
	return content
}

// contentOf returns the fields of an object. An object that cannot be converted has none, and then only its metadata
// can tell a difference.
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
