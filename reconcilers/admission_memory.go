// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admissionMemoryTTL is how long after its last use it is remembered what the server made of an object.
const admissionMemoryTTL = time.Hour

// admissionMemory remembers, for each object written, what was asked for and what that becomes once the API server has
// applied its defaults and called its webhooks. As long as the same is asked for again the second is what to compare
// the actual object with.
//
// What is remembered is bound to what was asked for, not to a generation: a fresh desired object has none, and one that
// differs in any way may be admitted differently.
type admissionMemory[T client.Object] struct {
	once sync.Once
	// seen has the UIDs of objects as its keys and *admitted as its values.
	seen *cache.Expiring
}

type admitted[T client.Object] struct {
	asked   T
	becomes T
	renew   time.Time
}

func (m *admissionMemory[T]) store() *cache.Expiring {
	m.once.Do(func() { m.seen = cache.NewExpiring() })
	return m.seen
}

// expected returns a copy of what the server is expected to make of desired, or of desired itself when nothing is
// known. It is a copy because the caller merges it into an object that is then changed by writing it.
func (m *admissionMemory[T]) expected(uid types.UID, desired T) T {
	value, ok := m.store().Get(uid)
	if !ok {
		return desired.DeepCopyObject().(T)
	}
	known := value.(*admitted[T])
	if !same(known.asked, desired) {
		return desired.DeepCopyObject().(T)
	}
	if now := time.Now(); now.After(known.renew) {
		m.put(uid, known.asked, known.becomes)
	}
	return known.becomes.DeepCopyObject().(T)
}

// learn remembers that asked has become stored, and keeps asked. merge is how the one gets into the other.
func (m *admissionMemory[T]) learn(asked, stored T, merge func(current, desired T)) error {
	remerged := stored.DeepCopyObject().(T)
	merge(remerged, asked.DeepCopyObject().(T))
	// What the server changed of the fields we manage, as a patch, can be replayed on the object that was asked for.
	operations, err := jsonPatch(remerged, stored)
	if err != nil {
		return err
	}
	if string(operations) == "[]" || string(operations) == "null" {
		m.forget(stored.GetUID())
		return nil
	}
	becomes := asked.DeepCopyObject().(T)
	if err := applyJSONPatch(operations, becomes); err != nil {
		m.forget(stored.GetUID())
		return err
	}
	// A merge may put the items of a list in other places than they have in what was asked for. What was learned holds
	// only if merging it leads to what is stored.
	remerged = stored.DeepCopyObject().(T)
	merge(remerged, becomes.DeepCopyObject().(T))
	if !same(remerged, stored) {
		m.forget(stored.GetUID())
		return errors.New("what the server changes cannot be told apart from what the merge does")
	}
	m.put(stored.GetUID(), asked, becomes)
	return nil
}

func (m *admissionMemory[T]) put(uid types.UID, asked, becomes T) {
	m.store().Set(
		uid, &admitted[T]{asked: asked, becomes: becomes, renew: time.Now().Add(admissionMemoryTTL / 2)}, admissionMemoryTTL,
	)
}

func (m *admissionMemory[T]) forget(uid types.UID) {
	m.store().Delete(uid)
}
