// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// target is what one or more observers watch: an object, or the objects that
// match a selector.
type target struct {
	// selector is nil for an object watched by name.
	selector labels.Selector
	// tracks are the observers of this target, each once, in no order.
	tracks []*track
	// drop removes the target from the tracker.
	drop func()
}

func (on *target) add(tr *track) {
	tr.index = len(on.tracks)
	on.tracks = append(on.tracks, tr)
}

func (on *target) remove(tr *track) {
	last := len(on.tracks) - 1
	moved := on.tracks[last]
	on.tracks[tr.index] = moved
	moved.index = tr.index
	on.tracks[last] = nil
	on.tracks = on.tracks[:last]
}

// trackKey identifies a track.
type trackKey struct {
	target   *target
	observer types.NamespacedName
}

// track is one observer watching one target, until it expires.
type track struct {
	trackKey
	expires time.Time
	// index is the place of this track among those of its target.
	index int
	// previous and next are the neighbours in the expiryList.
	previous, next *track
}

// expired reports whether the track has lapsed. A lease of zero lapses in the
// same instant.
func (tr *track) expired(now time.Time) bool {
	return !now.Before(tr.expires)
}

// expiryList holds tracks in the order in which they expire. As every track has
// the same lease, the one renewed last expires last, and appending keeps the
// order.
type expiryList struct {
	front, back *track
}

func (l *expiryList) pushBack(tr *track) {
	tr.previous, tr.next = l.back, nil
	if l.back == nil {
		l.front = tr
	} else {
		l.back.next = tr
	}
	l.back = tr
}

func (l *expiryList) remove(tr *track) {
	if tr.previous == nil {
		l.front = tr.next
	} else {
		tr.previous.next = tr.next
	}
	if tr.next == nil {
		l.back = tr.previous
	} else {
		tr.next.previous = tr.previous
	}
	tr.previous, tr.next = nil, nil
}

// observers collects the names of observers, each once.
type observers struct {
	now   time.Time
	names []types.NamespacedName
	// seen is filled when a second target contributes: the tracks of one target
	// have distinct observers, and most lookups meet only one.
	seen map[types.NamespacedName]struct{}
}

func newObservers(now time.Time) *observers {
	return &observers{now: now, names: []types.NamespacedName{}}
}

// add adds the observers of a target whose tracks have not expired.
func (o *observers) add(on *target) {
	first := len(o.names) == 0
	if !first && o.seen == nil {
		o.seen = make(map[types.NamespacedName]struct{}, len(o.names)+len(on.tracks))
		for _, name := range o.names {
			o.seen[name] = struct{}{}
		}
	}
	o.names = slices.Grow(o.names, len(on.tracks))
	for _, tr := range on.tracks {
		if tr.expired(o.now) {
			continue
		}
		if !first {
			if _, ok := o.seen[tr.observer]; ok {
				continue
			}
			o.seen[tr.observer] = struct{}{}
		}
		o.names = append(o.names, tr.observer)
	}
}
