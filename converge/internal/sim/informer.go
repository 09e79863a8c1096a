// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/internal/memapi"
)

// informer is the cache of a kind, with the watch that fills it.
type informer struct {
	process *Process
	kind    schema.GroupVersionKind
	// objects are sorted by namespace and name.
	objects []client.Object
	// position is the version of the cache: the version of its first list, or of its last event.
	position int64
	// coming are the events that are not in the cache yet.
	coming []memapi.Event
	held   *hold
	// selector limits the cache, if it is not nil. selected are the objects that its watch has shown.
	selector labels.Selector
	selected map[types.NamespacedName]bool
	// reads counts lists, whose order changes each time with [FaultListOrder].
	reads atomic.Int64

	// resync is set if the cache must repeat all its objects.
	resync bool
	// plain and mappers return the requests for an object, without and with calls. Both are for New.
	plain   []func(client.Object) []reconcile.Request
	mappers []handler.MapFunc
	// filters drop changes for plain and mappers.
	filters []predicate.Predicate
	// shared are the objects that were handed out without a copy.
	shared   []judge.Shared
	sharing  sync.Mutex
	handlers []*registration
	// forms are the informers that the process has, by the form of their objects.
	forms [3]*processInformer
	// joining are the handlers that have not received the existing objects yet.
	joining []*registration
}

// hold delays the events of a watch.
type hold struct {
	fault inject.Fault
	// from is the version of the first delayed event.
	from int64
	// reconcile is the number of reconciles that were started before.
	reconcile int
}

// longLag and longLagReconciles limit the delay of a cache.
const (
	longLag           = 100 * time.Millisecond
	longLagReconciles = 5
)

// due reports whether the next event is not delayed.
func (i *informer) due() bool {
	return len(i.coming) > 0 && (i.held == nil || i.coming[0].Version < i.held.from)
}

// ends reports whether the delay ends with a reconcile.
func (h *hold) ends(number int) bool {
	if h.fault == inject.LagReconcile {
		return number > h.reconcile
	}
	return number >= h.reconcile+longLagReconciles
}

// change is what a cache reports to its handlers.
type change struct {
	before, after client.Object
	// unseen is set for a deletion that a list has revealed.
	unseen bool
	// initial is set for objects that existed when the handler was added.
	initial bool
	// dropped is set if a filter drops the change for the reconciler of New.
	dropped bool
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

// list returns the objects that the API server has, as far as the selector matches.
func (i *informer) list() []client.Object {
	objects := i.process.world.Server.List(i.kind)
	if i.selector == nil {
		return objects
	}
	i.selected = map[types.NamespacedName]bool{}
	return slices.DeleteFunc(slices.Clone(objects), func(obj client.Object) bool {
		matches := i.selector.Matches(labels.Set(obj.GetLabels()))
		if matches {
			i.selected[client.ObjectKeyFromObject(obj)] = true
		}
		return !matches
	})
}

// shows returns the event that a watch with the selector has, or false if it has none: an object whose labels no longer
// match is deleted.
func (i *informer) shows(e memapi.Event) (memapi.Event, bool) {
	if i.selector == nil {
		return e, true
	}
	had := i.selected[e.Key]
	switch matches := e.Type != watch.Deleted && i.selector.Matches(labels.Set(e.Object.GetLabels())); {
	case matches && had:
		e.Type = watch.Modified
	case matches:
		e.Type, i.selected[e.Key] = watch.Added, true
	case had:
		e.Type = watch.Deleted
		delete(i.selected, e.Key)
	default:
		return e, false
	}
	return e, true
}

// next applies the next event to the cache.
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

// relist replaces the content of the cache, and returns the changes: an object that was replaced by another one of the
// same name has changed, and an object that no longer exists was deleted at some time.
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

// hides reports whether a list would hide from the process that another client has deleted what the process has created
// since the last event. No reconciler could notice that: neither an event nor an error is about it.
func (i *informer) hides() bool {
	created := map[types.NamespacedName]bool{}
	for _, e := range i.coming {
		switch {
		case e.Type == watch.Added && e.Client == i.process.program.Client:
			created[e.Key] = true
		case e.Type == watch.Deleted && created[e.Key] && e.Client != i.process.program.Client &&
			i.process.world.Server.Get(i.kind, e.Key) == nil:
			return true
		}
	}
	return false
}

// seen returns the version of the cache. A nil informer has none.
func (i *informer) seen() explain.Seen {
	switch {
	case i == nil:
		return explain.Seen{}
	case len(i.coming) == 0:
		return explain.Seen{Exists: true, Position: i.position}
	}
	return explain.Seen{Exists: true, Position: i.position, Latest: i.coming[len(i.coming)-1].Version}
}
