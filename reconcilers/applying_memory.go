// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/applied"
	"trueup.dev/internal/difference"
	"trueup.dev/internal/hotloop"
)

// appliedMemory remembers, for each applied object, the last version that is in sync, and how the stored object differs
// from the desired one although it is: webhooks may change what was applied.
type appliedMemory[T client.Object] struct {
	once sync.Once
	// seen maps UIDs of objects to *appliedObject values.
	seen *cache.Expiring
}

type appliedObject[T client.Object] struct {
	desired T
	version string
	// generation and metadata identify what can differ. The generation is 0 if the kind has none.
	generation  int64
	metadata    uint64
	differences []storedDifference
	renew       time.Time
}

// storedDifference is a difference without its values.
type storedDifference struct {
	path   string
	reason applied.Reason
	stored uint64
}

func (m *appliedMemory[T]) store() *cache.Expiring {
	m.once.Do(func() { m.seen = cache.NewExpiring() })
	return m.seen
}

func (m *appliedMemory[T]) get(obj, desired T) *appliedObject[T] {
	if obj.GetUID() == "" {
		return nil
	}
	value, ok := m.store().Get(obj.GetUID())
	if !ok {
		return nil
	}
	known := value.(*appliedObject[T])
	if !difference.Equal(known.desired, desired) {
		return nil
	}
	if time.Now().After(known.renew) {
		renewed := *known
		m.put(obj.GetUID(), &renewed)
	}
	return known
}

// inSync reports whether an object is known to need no request for the desired object: the version is known, or nothing
// but its status has changed since.
func (m *appliedMemory[T]) inSync(obj, desired T) bool {
	known := m.get(obj, desired)
	if known == nil || known.version == "" {
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
func (m *appliedMemory[T]) settled(obj, desired T, differences []applied.Difference) bool {
	known := m.get(obj, desired)
	return known != nil && slices.Equal(known.differences, withoutValues(differences))
}

// verified records that an object is in sync although it differs.
func (m *appliedMemory[T]) verified(obj, desired T, differences []applied.Difference) {
	if obj.GetUID() == "" {
		return
	}
	m.put(obj.GetUID(), &appliedObject[T]{
		desired: desired.DeepCopyObject().(T), version: obj.GetResourceVersion(),
		generation: obj.GetGeneration(), metadata: sumOfMetadata(obj), differences: withoutValues(differences),
	})
}

func (m *appliedMemory[T]) put(uid types.UID, known *appliedObject[T]) {
	known.renew = time.Now().Add(admissionMemoryTTL / 2)
	m.store().Set(uid, known, admissionMemoryTTL)
}

func (m *appliedMemory[T]) forget(uid types.UID) {
	m.store().Delete(uid)
}

func withoutValues(differences []applied.Difference) []storedDifference {
	stored := make([]storedDifference, len(differences))
	for i, d := range differences {
		stored[i] = storedDifference{d.Path, d.Reason, hotloop.HashValue(d.Stored)}
	}
	return stored
}
