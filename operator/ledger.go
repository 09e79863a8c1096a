// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ledger records, for every resource, the state that its handler last received. The difference between that state and
// the current one determines the action.
//
// Reconciles read and write it, one at a time for each resource. The events of a cache update it at any time. It keeps
// pointers to the objects of the cache: an unchanged resource needs no copy.
type ledger struct {
	// partly reports whether the ledger keeps only parts of resources.
	partly bool

	// resized is called after the number of records has changed. Optional.
	resized func(change int)

	mu      sync.Mutex
	records map[types.NamespacedName]*record
}

// record holds the known states of one resource. Its objects are never changed.
type record struct {
	// acked is the state that was last handled successfully, nil before the first success.
	acked client.Object
	// known is the state that the handler was last called with, successfully or not. It is nil if the handler does not
	// need to handle a deletion.
	known client.Object
	// finished is the resource whose deletion was handled, while the resource still exists or reconciles may still
	// read it.
	finished types.UID
	// pending is the call to retry or to repeat, nil if there is none.
	pending *pending

	// busy reports whether the handler is running.
	busy bool

	// Events set the fields below.

	// latest is the state in the cache, nil if the cache does not have the resource.
	latest client.Object
	// deleted is the last state of a resource that was deleted from the cache, nil if no deletion followed.
	deleted client.Object
	// listed reports whether the resource was in the initial list of the cache.
	listed bool
	// resynced reports whether the cache was resynced since the last reconcile.
	resynced bool
}

// pending is a call that must be made again.
type pending struct {
	action ReconcileAction
	// object is the resource of the last attempt.
	object client.Object
	// attempt is the number of failed attempts.
	attempt int
	// due is the time of the next attempt.
	due time.Time
	// quietUntil is set if the rate limiter schedules the next attempt. Until then, changes that do not supersede the
	// retry must not start the next attempt.
	quietUntil time.Time
	state      map[string]any
	// err is the error of the last attempt, nil if it only requested another call.
	err error
	// acked reports whether the last attempt succeeded and requested another one.
	acked bool
	// exhausted reports whether only a change of the resource leads to another attempt. reported is set once the
	// condition of the resource was to be written.
	exhausted, reported bool
}

// see returns the record of a resource, and creates it if it does not exist.
func (l *ledger) see(key types.NamespacedName) *record {
	if l.records == nil {
		l.records = map[types.NamespacedName]*record{}
	}
	r := l.records[key]
	if r == nil {
		r = &record{}
		l.records[key] = r
	}
	return r
}

// with calls do with the record of a resource, and then drops the record if it is empty.
func (l *ledger) with(key types.NamespacedName, do func(r *record)) {
	if change := l.change(key, do); change != 0 && l.resized != nil {
		l.resized(change)
	}
}

// change is with, and returns the change of the number of records.
func (l *ledger) change(key types.NamespacedName, do func(r *record)) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.records)
	r := l.see(key)
	do(r)
	if r.acked == nil && r.known == nil && r.finished == "" && r.pending == nil && r.latest == nil && !r.busy {
		delete(l.records, key)
	}
	return len(l.records) - before
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
}

// appeared records that the cache has a new resource.
func (l *ledger) appeared(obj client.Object, listed bool) {
	l.with(client.ObjectKeyFromObject(obj), func(r *record) {
		r.listed = listed
		l.hold(r, obj)
	})
}

// changed records that the cache has another version of a resource, or the same version after a resync.
func (l *ledger) changed(before, after client.Object) {
	l.with(client.ObjectKeyFromObject(after), func(r *record) {
		if uid := before.GetUID(); uid != after.GetUID() && r.known != nil && r.known.GetUID() == uid {
			r.deleted = l.fullest(r, before)
		}
		if before.GetResourceVersion() == after.GetResourceVersion() {
			r.resynced = true
		}
		l.hold(r, after)
	})
}

// vanished records that the cache no longer has a resource. If no reconcile handles absent resources, the record ends
// here. A reconcile may have handled another resource of the same name before this event arrived.
func (l *ledger) vanished(obj client.Object, absentIsHandled bool) {
	l.with(client.ObjectKeyFromObject(obj), func(r *record) {
		uid := obj.GetUID()
		if r.has(uid) {
			obj = l.fullest(r, obj)
			r.latest, r.listed, r.resynced = nil, false, false
		}
		if r.finished == uid && !absentIsHandled {
			r.finished = ""
		}
		switch {
		case r.known == nil && r.pending != nil && r.pending.object.GetUID() == uid:
			r.pending = nil
		case r.known == nil || r.known.GetUID() != uid:
		case absentIsHandled || r.busy:
			r.deleted = obj
		default:
			r.forget()
		}
	})
}

// absent returns the resource that no longer exists and whose deletion was not handled, or nil. If it returns nil, no
// work is left. certain is false if the cache never had the resource: it was read from the API server, and the cache
// may still receive it.
func (l *ledger) absent(key types.NamespacedName) (last client.Object, certain bool) {
	l.with(key, func(r *record) {
		if last = r.tombstone(); last == nil && r.latest == nil {
			r.pending, r.finished = nil, ""
		}
		for _, seen := range []client.Object{r.latest, r.deleted} {
			certain = certain || seen != nil && last != nil && seen.GetUID() == last.GetUID()
		}
	})
	return last, certain
}

// moved forgets a resource that another replica handles now, unless the cache has it again.
func (l *ledger) moved(obj client.Object) {
	l.with(client.ObjectKeyFromObject(obj), func(r *record) {
		if r.latest == nil && r.known != nil && r.known.GetUID() == obj.GetUID() {
			r.forget()
		}
	})
}

// forget drops everything that is known of a resource.
func (r *record) forget() {
	r.acked, r.known, r.deleted, r.pending = nil, nil, nil, nil
}

// finish drops everything that is known of a resource whose deletion was handled, or was given up. While reconciles
// may still read the resource, its deletion must not be handled again.
func (r *record) finish(uid types.UID, absent bool) {
	r.forget()
	switch {
	case !absent || r.has(uid):
		r.finished = uid
	case !r.has(r.finished):
		r.finished = ""
	}
}

// has reports whether the resource is still in the cache.
func (r *record) has(uid types.UID) bool {
	return r.latest != nil && r.latest.GetUID() == uid
}

// hold keeps the object of the cache, and replaces copies of the same state by it.
func (l *ledger) hold(r *record, obj client.Object) {
	r.latest = obj
	if l.partly {
		return
	}
	for _, held := range []*client.Object{&r.acked, &r.known} {
		if *held != nil && sameState(*held, obj) && sameType(*held, obj) {
			*held = obj
		}
	}
}

// fullest returns the most complete known state of a deleted resource. If the cache missed the deletion, it may have
// only the metadata.
func (l *ledger) fullest(r *record, obj client.Object) client.Object {
	if !l.partly && r.latest != nil && sameState(r.latest, obj) {
		return r.latest
	}
	return obj
}

// held returns the object to keep: the object of the cache, or a copy if the cache has another version.
func (r *record) held(obj client.Object) client.Object {
	if r.latest != nil && sameState(r.latest, obj) && sameType(r.latest, obj) {
		return r.latest
	}
	return obj.DeepCopyObject().(client.Object)
}

// tombstone returns the last known state of a resource that was handled and no longer exists.
func (r *record) tombstone() client.Object {
	last := r.known
	for _, seen := range []client.Object{r.latest, r.deleted} {
		if last != nil && seen != nil && seen.GetUID() == last.GetUID() && sameType(seen, last) && !olderThan(seen, last) {
			last = seen
		}
	}
	return last
}

// sameState compares by UID and version. It compares generations only for tests, which make up versions.
func sameState(a, b client.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion() && a.GetResourceVersion() != "" &&
		a.GetGeneration() == b.GetGeneration()
}

// sameType returns false if one of them was cast: the cache has it as the original Go type.
func sameType(a, b client.Object) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// olderThan reports whether a is an earlier state than b, of the same resource or of another one of the same name. It
// compares resource versions, because the versions of one kind come from one source, while the clocks of API servers
// differ. If they are not comparable, it compares creation times of different resources; otherwise a counts as newer.
func olderThan(a, b client.Object) bool {
	if order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion()); err == nil {
		return order < 0
	}
	since, other := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return a.GetUID() != b.GetUID() && !since.IsZero() && since.Before(&other)
}
