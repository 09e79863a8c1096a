// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// perObject keeps a value for each resource until a time, in memory. A resource that is deleted and created again is
// another resource, because it has another UID. The zero value is ready to use. It is safe for concurrent use.
type perObject[V any] struct {
	mu     sync.Mutex
	values map[objectID]kept[V]
	// sweepAt is the number of values at which expired values are dropped.
	sweepAt int
}

type kept[V any] struct {
	value V
	until time.Time
}

// objectID identifies a resource by its UID. A resource that was never stored has none, and is identified by its name.
type objectID struct {
	uid types.UID
	types.NamespacedName
	// item is the item of the loops around a reconciler, or "".
	item string
}

func idOf(resource client.Object) objectID {
	if uid := resource.GetUID(); uid != "" {
		return objectID{uid: uid}
	}
	return objectID{NamespacedName: client.ObjectKeyFromObject(resource)}
}

// minSweep is the smallest number of values that is worth a sweep.
const minSweep = 64

// get returns the value of a resource, or the zero value and false.
func (p *perObject[V]) get(resource client.Object) (V, bool) { return p.getOf(idOf(resource)) }

func (p *perObject[V]) getOf(id objectID) (V, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.values[id]
	return found.value, ok
}

// put keeps a value at least until the given time. Each value is visited about once for each value that is put, so
// that resources that no longer exist are forgotten.
func (p *perObject[V]) put(resource client.Object, value V, now, until time.Time) {
	p.putOf(idOf(resource), value, now, until)
}

func (p *perObject[V]) putOf(id objectID, value V, now, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.values == nil {
		p.values, p.sweepAt = map[objectID]kept[V]{}, minSweep
	}
	if len(p.values) >= p.sweepAt {
		for id, old := range p.values {
			if now.After(old.until) {
				delete(p.values, id)
			}
		}
		p.sweepAt = max(minSweep, 2*len(p.values))
	}
	p.values[id] = kept[V]{value, until}
}

func (p *perObject[V]) forget(resource client.Object) { p.forgetOf(idOf(resource)) }

func (p *perObject[V]) forgetOf(id objectID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.values, id)
}

// itemIDOf identifies a resource and, within a [ForEach] or [While], the item or the iteration. A reconciler that keeps
// state between requests runs once for each of them.
func itemIDOf(ctx context.Context, resource client.Object) objectID {
	id := idOf(resource)
	id.item = itemOf(ctx)
	return id
}

// perItem is a [perObject] for reconcilers that may be in a loop: it keeps a value for each item.
type perItem[V any] struct{ values perObject[V] }

func (p *perItem[V]) get(ctx context.Context, resource client.Object) (V, bool) {
	return p.values.getOf(itemIDOf(ctx, resource))
}

func (p *perItem[V]) put(ctx context.Context, resource client.Object, value V, now, until time.Time) {
	p.values.putOf(itemIDOf(ctx, resource), value, now, until)
}

func (p *perItem[V]) forget(ctx context.Context, resource client.Object) {
	p.values.forgetOf(itemIDOf(ctx, resource))
}
