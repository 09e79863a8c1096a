// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
)

// admissionMemoryTTL is how long a remembered value is kept after its last use.
const admissionMemoryTTL = time.Hour

// remembered keeps a value for each UID of an object. The zero value is ready to use. It is safe for concurrent use.
type remembered[V any] struct {
	once sync.Once
	// seen maps UIDs of objects to rememberedValue values.
	seen *cache.Expiring
}

type rememberedValue[V any] struct {
	value V
	renew time.Time
}

func (r *remembered[V]) store() *cache.Expiring {
	r.once.Do(func() { r.seen = cache.NewExpiring() })
	return r.seen
}

// get returns the value of an object if it is valid. That counts as a use, but the time is only renewed after half of
// it.
func (r *remembered[V]) get(uid types.UID, isValid func(V) bool) (value V, ok bool) {
	found, ok := r.store().Get(uid)
	if !ok {
		return value, false
	}
	known := found.(rememberedValue[V])
	if !isValid(known.value) {
		return value, false
	}
	if time.Now().After(known.renew) {
		r.put(uid, known.value)
	}
	return known.value, true
}

func (r *remembered[V]) put(uid types.UID, value V) {
	r.putFor(uid, value, admissionMemoryTTL)
}

func (r *remembered[V]) putFor(uid types.UID, value V, ttl time.Duration) {
	r.store().Set(uid, rememberedValue[V]{value, time.Now().Add(ttl / 2)}, ttl)
}

func (r *remembered[V]) forget(uid types.UID) {
	r.store().Delete(uid)
}
