// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"errors"
	"time"

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
	// until is the time until which the result is expected. It is zero if that does not end.
	until time.Time
}

func (a admitted[T]) isExpected() bool { return a.until.IsZero() || time.Now().Before(a.until) }

// keptFor is how long values are expected that the API server kept instead of those that were requested. Afterwards
// they are requested again: the webhook that kept them may be gone.
const keptFor = time.Hour

// expected returns a copy of the object that the server is expected to store for desired. Without an entry it returns a
// copy of desired. The caller merges the result into an object that a later write changes, so it must be a copy.
func (m *admissionMemory[T]) expected(uid types.UID, desired T) T {
	known, ok := m.get(uid, func(a admitted[T]) bool { return a.isExpected() && difference.Equal(a.requested, desired) })
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
	m.put(stored.GetUID(), admitted[T]{requested: requested, result: result})
	return nil
}

// limit makes the entry of an object expire, see [keptFor].
func (m *admissionMemory[T]) limit(uid types.UID) {
	if found, ok := m.store().Get(uid); ok {
		entry := found.(rememberedValue[admitted[T]]).value
		entry.until = time.Now().Add(keptFor)
		m.putFor(uid, entry, stateTTL)
	}
}

// wasKept reports whether the API server kept values of an object when the same object was requested before.
func (m *admissionMemory[T]) wasKept(uid types.UID, requested T) bool {
	found, ok := m.store().Get(uid)
	if !ok {
		return false
	}
	entry := found.(rememberedValue[admitted[T]]).value
	return !entry.until.IsZero() && difference.Equal(entry.requested, requested)
}
