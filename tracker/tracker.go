// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Tracker remembers which objects watch which others. It is safe for concurrent
// use.
type Tracker interface {
	// TrackReference records that obj, the observer, watches the objects that ref refers to. The track lasts for the lease
	// of the tracker; tracking the same reference again renews it. Only kind, namespace and name of the observer are kept.
	// The kind is determined as by TrackObject; if it is unknown, the Go type is used instead. TrackReference returns an
	// error that lists every problem of an invalid reference.
	TrackReference(ref Reference, obj client.Object) error

	// TrackObject records that obj, the observer, watches the object with the kind, namespace and name of ref. Otherwise
	// it behaves as TrackReference. The kind is the one set on ref, or the one that the scheme has for its Go type.
	// TrackObject returns an error if the kind cannot be determined.
	TrackObject(ref client.Object, obj client.Object) error

	// GetObservers returns the names of the observers that watch obj, by name or by selector, in no particular order. Each
	// name is returned once, even if observers of several kinds have it. If no observer watches obj, the result is empty,
	// not nil. GetObservers returns an error if the kind of obj cannot be determined, see TrackObject.
	GetObservers(obj client.Object) ([]types.NamespacedName, error)
}

// Forgetter is implemented by the trackers that [New] returns.
type Forgetter interface {
	// Forget drops all tracks of the observer and frees their memory, without waiting for the lease. Call it when the
	// observer no longer exists. Any object with its kind, namespace and name will do, see [Tracker.TrackReference].
	// Observers of other kinds that have the same name keep their tracks. The observer may track again later. A nil
	// observer is ignored.
	Forget(observer client.Object)
}

// Holder is implemented by the trackers that [New] returns. It is for controllers, which reconcile each observer again
// when a tracked object changes.
type Holder interface {
	// Hold makes the tracks of the observer independent of time, also those that it adds later: they no longer expire, and
	// an observer that is idle for longer than the lease keeps them. Hold then drops each track that was last renewed
	// before the given time, if the lease has ended since. Pass the time at which a reconcile started that has renewed
	// every track which the observer still needs, or the zero time to drop none. Hold does nothing for an observer that
	// has no tracks.
	Hold(observer client.Object, renewedSince time.Time)
}

// New returns an empty [Tracker], which also implements [Forgetter] and [Holder]. The scheme resolves the kind of typed
// objects. A track expires if it is not renewed within the lease, unless its observer is held; with a lease of zero it
// expires immediately.
func New(scheme *runtime.Scheme, lease time.Duration) Tracker {
	return newTracker(scheme, lease)
}

// longestLease is a lease that never expires and that can be added to any time without overflow.
const longestLease = 100 * 365 * 24 * time.Hour

func newTracker(scheme *runtime.Scheme, lease time.Duration) *tracker {
	t := &tracker{scheme: scheme, lease: min(lease, longestLease), started: time.Now()}
	t.timetable.init(max(t.lease, 0))
	return t
}

type tracker struct {
	scheme *runtime.Scheme
	lease  time.Duration
	// started is the time that other times are relative to.
	started time.Time
	// sweeping is set while a goroutine sweeps. The others do not sweep then.
	sweeping atomic.Bool

	// mu is held for writing while tracks are added and removed, and for reading by lookups and renewals. It guards all
	// fields below.
	mu        stripedLock
	kinds     table[schema.GroupKind, *kind]
	observers table[observerKind, *observers]
	tracks    table[trackKey, *track]
	timetable timetable
}

func (t *tracker) now() time.Duration { return time.Since(t.started) }

func (t *tracker) TrackObject(ref client.Object, obj client.Object) error {
	if ref == nil {
		return errors.New("can't track a nil object")
	}
	gk, err := groupKindOf(ref, t.scheme)
	if err != nil {
		return err
	}
	return t.TrackReference(Reference{
		APIGroup:  gk.Group,
		Kind:      gk.Kind,
		Namespace: ref.GetNamespace(),
		Name:      ref.GetName(),
	}, obj)
}

func (t *tracker) TrackReference(ref Reference, obj client.Object) error {
	if obj == nil {
		if err := ref.validate(); err != nil {
			return err
		}
		return errors.New("can't track for a nil observer")
	}
	by := observerKeyOf(obj, t.scheme)
	var buffer [256]byte // keeps renewals off the heap
	identity := buffer[:0]
	if ref.Selector != nil {
		ref.Selector = unwrap(ref.Selector)
		identity = appendIdentity(identity, ref.Selector)
	}

	now := t.now()
	if t.renew(ref, identity, by, now) {
		t.sweepIfDue(now)
		return nil
	}
	// Existing tracks were validated when they were added, so only new references are checked.
	if err := ref.validate(); err != nil {
		return err
	}
	if t.lease > 0 {
		t.add(ref, identity, by, now)
	}
	return nil
}

// renew renews the track if it exists. Every reconcile calls it.
func (t *tracker) renew(ref Reference, identity []byte, by observerKey, now time.Duration) bool {
	if ref.Name != "" && ref.Selector != nil {
		return false
	}
	defer t.mu.RLock().RUnlock()

	k := t.kinds.entries[ref.groupKind()]
	if k == nil {
		return false
	}
	tr := t.tracks.entries[trackKey{target: k.target(ref, identity), observer: t.observer(by)}]
	if tr == nil {
		return false
	}
	tr.expires.Store(int64(now + t.lease))
	return true
}

// add adds the track, unless another goroutine has just added it.
func (t *tracker) add(ref Reference, identity []byte, by observerKey, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)

	k := t.kinds.entries[ref.groupKind()]
	if k == nil {
		k = &kind{GroupKind: ref.groupKind()}
		t.kinds.put(k.GroupKind, k)
	}
	of := t.observers.entries[by.kind]
	if of == nil {
		of = &observers{kind: by.kind}
		t.observers.put(by.kind, of)
	}
	o := of.entries[by.name]
	if o == nil {
		o = &observer{of: of}
		of.put(by.name, o)
	}
	on := k.target(ref, identity)
	if on == nil {
		on = k.add(ref, identity)
		on.tracks = on.only[:0]
	}
	key := trackKey{target: on, observer: o}
	if t.tracks.entries[key] != nil {
		return
	}
	tr := on.newTrack()
	tr.trackKey, tr.name = key, by.name
	tr.expires.Store(int64(now + t.lease))
	t.tracks.put(key, tr)
	on.mixed = on.mixed || len(on.tracks) != 0 && on.tracks[0].observer.of != of
	on.tracks = ofTarget.add(on.tracks, tr)
	o.tracks = ofObserver.add(o.tracks, tr)
	if !o.held.Load() {
		t.timetable.add(tr)
	}
}

// remove removes a track that is not in the timetable, and the target and observer if it was their last one.
func (t *tracker) remove(tr *track) {
	on, o, name := tr.target, tr.observer, tr.name
	t.tracks.remove(tr.trackKey)
	on.tracks = ofTarget.remove(on.tracks, tr)
	o.tracks = ofObserver.remove(o.tracks, tr)
	tr.trackKey, tr.name = trackKey{}, types.NamespacedName{}
	if len(o.tracks) == 0 {
		o.of.remove(name)
		if len(o.of.entries) == 0 {
			t.observers.remove(o.of.kind)
		}
	}
	if len(on.tracks) == 0 {
		on.kind.remove(on)
		if on.kind.empty() {
			t.kinds.remove(on.kind.GroupKind)
		}
	}
}

// observer returns nil if the observer has no tracks.
func (t *tracker) observer(by observerKey) *observer {
	if of := t.observers.entries[by.kind]; of != nil {
		return of.entries[by.name]
	}
	return nil
}

func (t *tracker) Forget(obj client.Object) {
	if obj == nil {
		return
	}
	by := observerKeyOf(obj, t.scheme)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(t.now())

	o := t.observer(by)
	if o == nil {
		return
	}
	for len(o.tracks) != 0 {
		tr := o.tracks[len(o.tracks)-1]
		tr.unlink()
		t.remove(tr)
	}
}

func (t *tracker) Hold(obj client.Object, renewedSince time.Time) {
	if obj != nil {
		t.hold(observerKeyOf(obj, t.scheme), renewedSince)
	}
}

// HoldNamed is Hold for the observer with a kind and a name, without an object.
func (t *tracker) HoldNamed(kind schema.GroupKind, name types.NamespacedName, renewedSince time.Time) {
	t.hold(observerKey{kind: observerKind{GroupKind: kind}, name: name}, renewedSince)
}

func (t *tracker) hold(by observerKey, renewedSince time.Time) {
	now, since := t.now(), renewedSince.Sub(t.started)
	if t.holds(by, now, since) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.observer(by)
	if o == nil {
		return
	}
	expired := !o.held.Swap(true)             // tracks that have expired are not revived
	for i := len(o.tracks) - 1; i >= 0; i-- { // removing a track moves the last one, which was visited, to its place
		tr := o.tracks[i]
		tr.unlink()
		if expired && tr.ended(now) || t.outdated(tr, now, since) {
			t.remove(tr)
		}
	}
}

// holds reports whether Hold has nothing to change. Every reconcile calls it.
func (t *tracker) holds(by observerKey, now, since time.Duration) bool {
	defer t.mu.RLock().RUnlock()
	o := t.observer(by)
	if o == nil {
		return true
	}
	outdated := func(tr *track) bool { return t.outdated(tr, now, since) }
	return o.held.Load() && !slices.ContainsFunc(o.tracks, outdated)
}

// outdated reports whether the lease of a track has ended and the track was last renewed before a time.
func (t *tracker) outdated(tr *track, now, since time.Duration) bool {
	return tr.ended(now) && tr.expires.Load() < int64(since+t.lease)
}

func (t *tracker) GetObservers(obj client.Object) ([]types.NamespacedName, error) {
	if obj == nil {
		return nil, errors.New("can't look up the observers of a nil object")
	}
	gk, err := groupKindOf(obj, t.scheme)
	if err != nil {
		return nil, err
	}
	now := t.now()
	t.sweepIfDue(now)
	found := finding{now: now, names: []types.NamespacedName{}}
	t.find(gk, obj, &found)
	return found.names, nil
}

func (t *tracker) find(gk schema.GroupKind, obj client.Object, found *finding) {
	defer t.mu.RLock().RUnlock()
	if k := t.kinds.entries[gk]; k != nil {
		k.find(obj, found)
	}
}

// sweepSize is the maximum number of tracks that one call sweeps. It is more than a call can add, so that sweeping
// catches up.
const sweepSize = 16

// sweepIfDue sweeps if a sweep is due and no other goroutine sweeps. Without it, expired tracks would stay in memory
// until a new one is tracked.
func (t *tracker) sweepIfDue(now time.Duration) {
	if int64(now) < t.timetable.due.Load() || !t.sweeping.CompareAndSwap(false, true) {
		return
	}
	defer t.sweeping.Store(false)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
}

// sweep removes expired tracks.
func (t *tracker) sweep(now time.Duration) {
	if int64(now) < t.timetable.due.Load() {
		return
	}
	for range sweepSize {
		tr := t.timetable.pop(now)
		switch {
		case tr == nil:
			return
		case tr.ended(now):
			t.remove(tr)
		default:
			t.timetable.add(tr)
		}
	}
}
