// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ledger remembers for every resource what its handler knows of it. What has happened since is the difference between
// that and the resource as it is now.
//
// It is read and written by reconciles, of which there is one at a time for each resource, and fed by the events of a
// cache, at any time. Objects of a cache are kept by their pointers: a resource that is quiet costs no copy.
type ledger struct {
	// partly is true when only parts of resources are remembered.
	partly bool

	// size counts the records. Optional.
	size prometheus.Gauge

	mu      sync.Mutex
	records map[types.NamespacedName]*record
}

// record is what is known of one resource. Objects in it are never changed.
type record struct {
	// acked is the resource as it was when it was last handled with success, nil before that.
	acked client.Object
	// known is the resource as its handler was last called with it, with success or not, and nil when the handler need not
	// be told that it goes.
	known client.Object
	// finished is the resource whose deletion was handled, while it is still there or may still be met.
	finished types.UID
	// pending is the call that did not succeed or is to be repeated, nil when there is none.
	pending *pending

	// busy is true while a handler is called.
	busy bool

	// What follows is fed by events.

	// latest is the resource as the cache has it, nil when it has none.
	latest client.Object
	// gone is a resource that the cache had last, nil when none has gone since.
	gone client.Object
	// listed is true when the resource was there before the cache was.
	listed bool
	// resynced is true after a resync of the cache.
	resynced bool
}

// pending is a call that is to be made again.
type pending struct {
	action ReconcileAction
	// object is the resource of the last attempt.
	object client.Object
	// attempt is how often it has failed.
	attempt int
	// due is when the next attempt is due.
	due time.Time
	// calm is until when changes that do not count must not lead to the next attempt, where the rate limiter tells when it
	// is due.
	calm  time.Time
	state map[string]any
	// err is why the last attempt has failed, nil when it only asked to be called again.
	err error
	// acked is true when the last attempt was a success, that asked for another one.
	acked bool
	// exhausted is true when nothing but a change of the resource leads to another attempt, and told when that was to be
	// written to the resource.
	exhausted, told bool
}

// see returns the record of a resource, and makes one if there is none.
func (l *ledger) see(key types.NamespacedName) *record {
	if l.records == nil {
		l.records = map[types.NamespacedName]*record{}
	}
	r := l.records[key]
	if r == nil {
		r = &record{}
		l.records[key] = r
		if l.size != nil {
			l.size.Inc()
		}
	}
	return r
}

// with calls do with the record of a resource, and then drops the record if it says nothing.
func (l *ledger) with(key types.NamespacedName, do func(r *record)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.see(key)
	do(r)
	if r.acked == nil && r.known == nil && r.finished == "" && r.pending == nil && r.latest == nil && !r.busy {
		delete(l.records, key)
		if l.size != nil {
			l.size.Dec()
		}
	}
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
}

// appeared notes that the cache has a resource it did not have.
func (l *ledger) appeared(obj client.Object, listed bool) {
	l.with(client.ObjectKeyFromObject(obj), func(r *record) {
		r.listed = listed
		l.hold(r, obj)
	})
}

// changed notes that the cache has another version of a resource, or the same one once more.
func (l *ledger) changed(before, after client.Object) {
	l.with(client.ObjectKeyFromObject(after), func(r *record) {
		if uid := before.GetUID(); uid != after.GetUID() && r.known != nil && r.known.GetUID() == uid {
			r.gone = l.fullest(r, before)
		}
		if before.GetResourceVersion() == after.GetResourceVersion() {
			r.resynced = true
		}
		l.hold(r, after)
	})
}

// vanished notes that the cache has a resource no more. Unless somebody asks for resources that are absent, that is the
// end of it. A reconcile may have met another resource of the same name before the event came.
func (l *ledger) vanished(obj client.Object, absentIsAsked bool) {
	l.with(client.ObjectKeyFromObject(obj), func(r *record) {
		uid := obj.GetUID()
		if r.has(uid) {
			obj = l.fullest(r, obj)
			r.latest, r.listed, r.resynced = nil, false, false
		}
		if r.finished == uid && !absentIsAsked {
			r.finished = ""
		}
		switch {
		case r.known == nil && r.pending != nil && r.pending.object.GetUID() == uid:
			r.pending = nil
		case r.known == nil || r.known.GetUID() != uid:
		case absentIsAsked || r.busy:
			r.gone = obj
		default:
			r.forget()
		}
	})
}

// absent returns the resource that is gone without its handler having been told, nil if there is none. Then there is
// nothing left to be done. It is not certain that it is gone if the cache has never had it: what was read past the
// cache may still come.
func (l *ledger) absent(key types.NamespacedName) (gone client.Object, certain bool) {
	l.with(key, func(r *record) {
		if gone = r.tombstone(); gone == nil && r.latest == nil {
			r.pending, r.finished = nil, ""
		}
		for _, seen := range []client.Object{r.latest, r.gone} {
			certain = certain || seen != nil && gone != nil && seen.GetUID() == gone.GetUID()
		}
	})
	return gone, certain
}

// forget ends what is known of a resource.
func (r *record) forget() {
	r.acked, r.known, r.gone, r.pending = nil, nil, nil, nil
}

// finish ends what is known of a resource whose deletion was handled, or was given up. As long as it may be met again,
// its handler must not be told again.
func (r *record) finish(uid types.UID, gone bool) {
	r.forget()
	switch {
	case !gone || r.has(uid):
		r.finished = uid
	case !r.has(r.finished):
		r.finished = ""
	}
}

// has is true for a resource that is still in the cache.
func (r *record) has(uid types.UID) bool {
	return r.latest != nil && r.latest.GetUID() == uid
}

// hold keeps the object of the cache, also in place of a copy of it.
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

// fullest returns a resource that has gone. A cache that has missed it, and lost the resource, may have no more than
// its metadata.
func (l *ledger) fullest(r *record, gone client.Object) client.Object {
	if !l.partly && r.latest != nil && sameState(r.latest, gone) {
		return r.latest
	}
	return gone
}

// held returns what to keep of a resource: the object of the cache, or a copy if the cache has another version.
func (r *record) held(obj client.Object) client.Object {
	if r.latest != nil && sameState(r.latest, obj) && sameType(r.latest, obj) {
		return r.latest
	}
	return obj.DeepCopyObject().(client.Object)
}

// tombstone is the last that is known of a resource that was handled and is gone.
func (r *record) tombstone() client.Object {
	last := r.known
	for _, seen := range []client.Object{r.latest, r.gone} {
		if last != nil && seen != nil && seen.GetUID() == last.GetUID() && sameType(seen, last) && !olderThan(seen, last) {
			last = seen
		}
	}
	return last
}

// sameState compares by version. The generation is part of it only where versions are made up, in tests.
func sameState(a, b client.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion() && a.GetResourceVersion() != "" &&
		a.GetGeneration() == b.GetGeneration()
}

// sameType is false for what was cast: the cache has it as the Go type it was before.
func sameType(a, b client.Object) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// olderThan is true when a is an earlier state than b, of the same resource or of another one that had its name.
// Resource versions tell that: those of one kind come from one source, while the clocks of API servers differ. Where
// they cannot be compared a resource that was created before is older; otherwise a counts as newer.
func olderThan(a, b client.Object) bool {
	if order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion()); err == nil {
		return order < 0
	}
	since, other := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return a.GetUID() != b.GetUID() && !since.IsZero() && since.Before(&other)
}
