// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
)

// admissionMemory remembers, for each written object, the object that was requested and the object after the API server
// applied its defaults and called its webhooks. While the request stays the same, the actual object is compared with
// the latter.
//
// Entries are keyed by the requested object, not by a generation: a fresh desired object has no generation, and the
// server may admit a different object differently.
type admissionMemory[T client.Object] struct {
	remembered[admitted[T]]
}

type admitted[T client.Object] struct {
	requested T
	result    T
}

// expected returns a copy of the object that the server is expected to store for desired. Without an entry it returns a
// copy of desired. The caller merges the result into an object that a later write changes, so it must be a copy.
func (m *admissionMemory[T]) expected(uid types.UID, desired T) T {
	known, ok := m.get(uid, func(a admitted[T]) bool { return difference.Equal(a.requested, desired) })
	if !ok {
		return desired.DeepCopyObject().(T)
	}
	return known.result.DeepCopyObject().(T)
}

// learn records that the server stored requested as stored. It keeps requested, so the caller must not change it. merge
// copies the managed fields of an object.
func (m *admissionMemory[T]) learn(requested, stored T, merge func(current, desired T)) error {
	remerged := stored.DeepCopyObject().(T)
	merge(remerged, requested.DeepCopyObject().(T))
	// A patch with the server's changes to the managed fields can be applied to the requested object again.
	operations, err := jsonPatch(remerged, stored)
	if err != nil {
		return err
	}
	if string(operations) == "[]" || string(operations) == "null" {
		m.forget(stored.GetUID())
		return nil
	}
	result := requested.DeepCopyObject().(T)
	if err := applyJSONPatch(operations, result); err != nil {
		m.forget(stored.GetUID())
		return err
	}
	// A merge may reorder the items of a list. The entry is valid only if merging it results in the stored object.
	remerged = stored.DeepCopyObject().(T)
	merge(remerged, result.DeepCopyObject().(T))
	if !difference.Equal(remerged, stored) {
		m.forget(stored.GetUID())
		return errors.New("changes by the server cannot be distinguished from changes by the merge")
	}
	m.put(stored.GetUID(), admitted[T]{requested, result})
	return nil
}
