// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"sync/atomic"
	"time"
)

const (
	// ticksPerLease is the precision of the timetable: memory is released within a 32nd of the lease after a track
	// expires.
	ticksPerLease = 32
	// ticks is the length of the timetable. A track expires at most one lease ahead, so that past ticks are never mistaken
	// for future ones.
	ticks = 2 * ticksPerLease
)

// timetable orders tracks by the tick in which they expire, so that finding expired tracks rarely visits others.
// Renewing a track does not touch the timetable: the track stays in its tick and moves on when that tick is over, at
// most once per lease.
type timetable struct {
	tick time.Duration
	// over is the number of ticks whose tracks are in overdue.
	over int64
	// upcoming holds at i%ticks the tracks that expire in tick i unless they are renewed.
	upcoming [ticks]trackList
	// overdue holds the tracks whose tick is over: they have expired or were renewed.
	overdue trackList
	// due is the time of the next sweep, a time.Duration.
	due atomic.Int64
}

// init prepares the zero timetable for a positive lease.
func (tt *timetable) init(lease time.Duration) {
	tt.tick = lease/ticksPerLease + 1
	tt.overdue.init()
	for i := range tt.upcoming {
		tt.upcoming[i].init()
	}
	tt.due.Store(int64(tt.tick))
}

// add enters a track whose expires is set.
func (tt *timetable) add(tr *track) {
	// A short lease can expire before the track is entered.
	tick := max(tr.expires.Load()/int64(tt.tick), tt.over)
	tt.upcoming[tick%ticks].pushBack(tr)
}

// pop removes and returns a track whose tick is over, nil if none is.
func (tt *timetable) pop(now time.Duration) *track {
	over := int64(now / tt.tick)
	for tick := max(tt.over, over-ticks); tick < over; tick++ {
		tt.overdue.take(&tt.upcoming[tick%ticks])
	}
	tt.over = max(tt.over, over)

	tr := tt.overdue.front()
	if tr == nil {
		tt.due.Store((tt.over + 1) * int64(tt.tick))
		return nil
	}
	tt.due.Store(0)
	tr.unlink()
	return tr
}

// trackList is a ring of tracks around the zero track.
type trackList struct{ ring track }

func (l *trackList) init() { l.ring.previous, l.ring.next = &l.ring, &l.ring }

func (l *trackList) front() *track {
	if l.ring.next == &l.ring {
		return nil
	}
	return l.ring.next
}

func (l *trackList) pushBack(tr *track) {
	last := l.ring.previous
	last.next, tr.previous = tr, last
	tr.next, l.ring.previous = &l.ring, tr
}

// take moves all tracks of the other list to the end of this one.
func (l *trackList) take(other *trackList) {
	first, last := other.ring.next, other.ring.previous
	if first == &other.ring {
		return
	}
	other.init()
	end := l.ring.previous
	end.next, first.previous = first, end
	last.next, l.ring.previous = &l.ring, last
}

// unlink removes the track from its list, if it is in one.
func (tr *track) unlink() {
	if tr.next == nil {
		return
	}
	tr.previous.next, tr.next.previous = tr.next, tr.previous
	tr.previous, tr.next = nil, nil
}
