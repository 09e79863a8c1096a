// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// target is watched by one or more observers: an object, or the objects that match a selector.
type target struct {
	// selection is nil for an object watched by name.
	selection *selection
	// tracks has one track for each observer of this target, unordered.
	tracks []*track
	// only is memory for one track in tracks. Most targets have no more.
	only [1]*track
	// first is memory for that track, in use if it has a target. It is close to the target for fast lookups.
	first track
	// mixed reports whether tracks may have observers of several kinds, whose names can repeat.
	mixed bool
	// kind of the objects.
	kind *kind
	// name is the key of the target in its kind.
	name types.NamespacedName
}

// newTrack returns a track that is not in use.
func (on *target) newTrack() *track {
	if on.first.target == nil {
		return &on.first
	}
	return new(track)
}

// trackKey identifies a track.
type trackKey struct {
	target   *target
	observer *observer
}

// track represents one observer that watches one target, until it expires.
type track struct {
	// name of the observer. It is stored beside the expiry to make lookups fast.
	name types.NamespacedName
	// expires is the time.Duration since the tracker was made. A renewal writes it while lookups read it.
	expires atomic.Int64
	trackKey
	// place holds the index of this track among the tracks of its target and of its observer.
	place [2]int32
	// previous and next are the neighbors in a list of the timetable.
	previous, next *track
}

// expired reports whether the track has expired: its lease has ended and its observer is not held.
func (tr *track) expired(now time.Duration) bool {
	return tr.ended(now) && !tr.observer.held.Load()
}

// ended reports whether the lease has ended since the last renewal.
func (tr *track) ended(now time.Duration) bool {
	return int64(now) >= tr.expires.Load()
}

// side is one of the two ends of a track.
type side int

const (
	ofTarget side = iota
	ofObserver
)

func (s side) add(tracks []*track, tr *track) []*track {
	tr.place[s] = int32(len(tracks))
	return append(tracks, tr)
}

func (s side) remove(tracks []*track, tr *track) []*track {
	last := len(tracks) - 1
	moved := tracks[last]
	tracks[tr.place[s]] = moved
	moved.place[s] = tr.place[s]
	tracks[last] = nil
	tracks = tracks[:last]
	if cap(tracks) > roomy && last < cap(tracks)/4 {
		tracks = slices.Clone(tracks)
	}
	return tracks
}
