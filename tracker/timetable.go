// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"sync/atomic"
	"time"
)

const (
	// ticksPerLease is how exactly memory is given back: within a 32nd of the
	// lease after a track lapsed.
	ticksPerLease = 32
	// ticks is the length of the timetable. A track lapses at most one lease
	// ahead, so that ticks which are over are never mistaken for those to come.
	ticks = 2 * ticksPerLease
)

// timetable orders tracks by the tick of time in which they expire, so that
// finding those that lapsed hardly ever means looking at others. Renewing a
// track does not touch it: the track stays where it is, and moves on when its
// tick is over. Each track costs that once per lease at most.
type timetable struct {
	tick time.Duration
	// over is the number of ticks whose tracks are in overdue.
	over int64
	// upcoming has the tracks that expire, unless renewed, in tick i at i%ticks.
	upcoming [ticks]trackList
	// overdue has the tracks whose tick is over: lapsed, or renewed meanwhile.
	overdue trackList
	// due is when there will be something to do, a time.Duration.
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

// add enters a track that has expires set.
func (tt *timetable) add(tr *track) {
	// A lease can be over before the track is entered, when the lease is short.
	tick := max(tr.expires.Load()/int64(tt.tick), tt.over)
	tt.upcoming[tick%ticks].pushBack(tr)
}

// pop removes and returns a track whose tick is over, nil when there is none.
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

func (tr *track) unlink() {
	tr.previous.next, tr.next.previous = tr.next, tr.previous
	tr.previous, tr.next = nil, nil
}
