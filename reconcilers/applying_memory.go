// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/hotloop"
	"trueup.dev/internal/engine/ownership"
)

// appliedMemory remembers, for each applied object, the last version that is in sync, and how the stored object differs
// from the desired one although it is: webhooks may change what was applied.
type appliedMemory[T client.Object] struct {
	remembered[appliedObject[T]]
}

type appliedObject[T client.Object] struct {
	desired T
	version string
	// generation and metadata identify what can differ. The generation is 0 if the kind has none.
	generation  int64
	metadata    uint64
	differences []storedDifference
	// until is when this expires, see [keptFor]. It is zero if it does not.
	until time.Time
}

func (a appliedObject[T]) isExpected() bool { return a.until.IsZero() || time.Now().Before(a.until) }

// storedDifference is a difference without its values.
type storedDifference struct {
	path   string
	reason ownership.Reason
	stored uint64
}

// of returns what is known about an object, if it was for the same desired object.
func (m *appliedMemory[T]) of(obj, desired T) (known appliedObject[T], ok bool) {
	if obj.GetUID() == "" {
		return known, false
	}
	return m.get(obj.GetUID(), func(a appliedObject[T]) bool {
		return a.isExpected() && difference.Equal(a.desired, desired)
	})
}

// inSync reports whether an object is known to need no request for the desired object: the version is known, or nothing
// but its status has changed since.
func (m *appliedMemory[T]) inSync(obj, desired T) bool {
	known, ok := m.of(obj, desired)
	if !ok || known.version == "" {
		return false
	}
	return known.version == obj.GetResourceVersion() || known.generation != 0 &&
		known.generation == obj.GetGeneration() && known.metadata == sumOfMetadata(obj)
}

var metadataSeed = maphash.MakeSeed()

// sumOfMetadata returns a hash of the metadata that clients can change, and of what is owned. Changes of the status
// only, also of its owners, do not change it.
func sumOfMetadata(obj client.Object) (sum uint64) {
	add := func(parts ...string) {
		var h maphash.Hash
		h.SetSeed(metadataSeed)
		for _, part := range parts {
			_, _ = h.WriteString(part)
			_ = h.WriteByte(0)
		}
		sum += h.Sum64() // maps have no order
	}
	for key, value := range obj.GetLabels() {
		add("label", key, value)
	}
	for key, value := range obj.GetAnnotations() {
		add("annotation", key, value)
	}
	for i, finalizer := range obj.GetFinalizers() {
		add("finalizer", strconv.Itoa(i), finalizer)
	}
	for i, o := range obj.GetOwnerReferences() {
		flags := fmt.Sprint(i, o.Controller != nil && *o.Controller, o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion)
		add("owner", flags, o.APIVersion, o.Kind, o.Name, string(o.UID))
	}
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource != "status" && entry.FieldsV1 != nil {
			add("fields", entry.Manager, string(entry.Operation), entry.Subresource, entry.FieldsV1.GetRawString())
		}
	}
	return sum
}

// settled reports whether the server is known to store the desired object with these differences.
func (m *appliedMemory[T]) settled(obj, desired T, differences []ownership.Difference) bool {
	known, ok := m.of(obj, desired)
	return ok && slices.Equal(known.differences, withoutValues(differences))
}

// wasKept reports whether the API server kept values of an object when the same object was applied before.
func (m *appliedMemory[T]) wasKept(obj, desired T) bool {
	found, ok := m.store().Get(obj.GetUID())
	if !ok {
		return false
	}
	known := found.(rememberedValue[appliedObject[T]]).value
	return !known.until.IsZero() && difference.Equal(known.desired, desired)
}

// limited records that an object is in sync until [keptFor] is over: the API server kept values of it.
func (m *appliedMemory[T]) limited(obj, desired T, differences []ownership.Difference) {
	known := m.entry(obj, desired, differences)
	known.until = time.Now().Add(keptFor)
	m.putFor(obj.GetUID(), known, stateTTL)
}

// verified records that an object is in sync although it differs.
func (m *appliedMemory[T]) verified(obj, desired T, differences []ownership.Difference) {
	if obj.GetUID() == "" {
		return
	}
	entry := m.entry(obj, desired, differences)
	if known, ok := m.of(obj, desired); ok && !known.until.IsZero() && slices.Equal(known.differences, entry.differences) {
		entry.until = known.until
		m.putFor(obj.GetUID(), entry, stateTTL)
		return
	}
	m.put(obj.GetUID(), entry)
}

func (m *appliedMemory[T]) entry(obj, desired T, differences []ownership.Difference) appliedObject[T] {
	known := appliedObject[T]{
		desired: desired.DeepCopyObject().(T), version: obj.GetResourceVersion(), generation: obj.GetGeneration(),
		differences: withoutValues(differences),
	}
	if known.generation != 0 {
		known.metadata = sumOfMetadata(obj)
	}
	return known
}

func withoutValues(differences []ownership.Difference) []storedDifference {
	stored := make([]storedDifference, len(differences))
	for i, d := range differences {
		stored[i] = storedDifference{d.Path, d.Reason, hotloop.HashValue(d.Stored)}
	}
	return stored
}
