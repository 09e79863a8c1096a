// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/memapi"
)

// informer is the cache of a kind, with the watch that fills it.
type informer struct {
	kind schema.GroupVersionKind
	// objects are sorted by namespace and name.
	objects []client.Object
	// position is the version that the cache is at: the one of the list it began with, or of the last event.
	position int64
	// coming are events that the API server has had, and the cache has not.
	coming []memapi.Event
	held   *hold
	// reads counts lists, which come in another order each time if they are to.
	reads int

	// resync is true when the cache is to repeat all that it has.
	resync bool
	// plain and mappers find the requests for an object, without and with calls. Both are for New.
	plain   []func(client.Object) []reconcile.Request
	mappers []handler.MapFunc
	// shared are the objects that were given away without a copy.
	shared   []shared
	handlers []*registration
	// joining are the handlers that do not know yet what there is.
	joining []*registration
}

// hold is a watch that is late.
type hold struct {
	fault Fault
	// from is the version of the first event that is late.
	from int64
	// reconcile is the number of reconciles that had been started.
	reconcile int
}

// longLag and longLagReconciles are how long a cache is late at most.
const (
	longLag           = 100 * time.Millisecond
	longLagReconciles = 5
)

// due is true if there is an event that is not late.
func (i *informer) due() bool {
	return len(i.coming) > 0 && (i.held == nil || i.coming[0].Version < i.held.from)
}

// ends is true when the hold ends with a reconcile.
func (h *hold) ends(number int) bool {
	if h.fault == FaultLagReconcile {
		return number > h.reconcile
	}
	return number >= h.reconcile+longLagReconciles
}

// change is what a cache tells those who watch it.
type change struct {
	before, after client.Object
	// unseen is true for a deletion that was not seen, only found out about.
	unseen bool
	// initial is true for what was there when the handler came.
	initial bool
}

func (i *informer) find(key types.NamespacedName) (int, bool) {
	return slices.BinarySearchFunc(i.objects, key, func(obj client.Object, key types.NamespacedName) int {
		if order := strings.Compare(obj.GetNamespace(), key.Namespace); order != 0 {
			return order
		}
		return strings.Compare(obj.GetName(), key.Name)
	})
}

func (i *informer) get(key types.NamespacedName) client.Object {
	if at, ok := i.find(key); ok {
		return i.objects[at]
	}
	return nil
}

// next takes the next event into the cache.
func (i *informer) next() change {
	e := i.coming[0]
	i.coming = i.coming[1:]
	i.position = e.Version
	return i.store(e.Type, e.Key, e.Object)
}

func (i *informer) store(kind watch.EventType, key types.NamespacedName, obj client.Object) change {
	at, found := i.find(key)
	switch {
	case kind == watch.Deleted && found:
		before := i.objects[at]
		i.objects = slices.Delete(i.objects, at, at+1)
		return change{before: before, after: nil}
	case kind == watch.Deleted:
		return change{}
	case found:
		before := i.objects[at]
		i.objects[at] = obj
		return change{before: before, after: obj}
	default:
		i.objects = slices.Insert(i.objects, at, obj)
		return change{after: obj}
	}
}

// relist has the cache jump to what there is, and returns what it tells then: an object that was replaced by another
// one of the same name has changed, and one that is gone has been deleted at some time.
func (i *informer) relist(objects []client.Object, version int64) []change {
	before := i.objects
	i.objects, i.position, i.coming = slices.Clone(objects), version, nil
	var changes []change
	for _, obj := range before {
		if i.get(client.ObjectKeyFromObject(obj)) == nil {
			changes = append(changes, change{before: obj, unseen: true})
		}
	}
	for _, obj := range i.objects {
		old := (&informer{objects: before}).get(client.ObjectKeyFromObject(obj))
		if old != obj {
			changes = append(changes, change{before: old, after: obj})
		}
	}
	return changes
}
