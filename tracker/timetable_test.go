// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTimetable(t *testing.T) {
	const tick = 10 * time.Nanosecond
	const lease = ticksPerLease*tick - 1 // a tick is slightly longer than its part of the lease
	at := func(ticks float64) time.Duration { return time.Duration(ticks * float64(tick)) }

	// step first pops all tracks whose tick is over, then enters a track.
	type step struct {
		now  time.Duration
		want []time.Duration
		add  time.Duration
	}
	tests := map[string]struct {
		reason string
		steps  []step
	}{
		"Order": {
			reason: "tracks are popped when their tick is over, regardless of when they were entered",
			steps: []step{
				{now: 0, add: at(3.5)},
				{now: 0, add: at(1.5)},
				{now: 0, add: at(1.1)},
				{now: at(1.9)},
				{now: at(2), want: []time.Duration{at(1.5), at(1.1)}},
				{now: at(5), want: []time.Duration{at(3.5)}},
			},
		},
		"AfterALongTime": {
			reason: "no track waits for a second round",
			steps: []step{
				{now: 0, add: at(1)},
				{now: 0, add: at(20)},
				{now: at(1e14), want: []time.Duration{at(1), at(20)}, add: at(1e14 + 5)},
				{now: at(1e14 + 5)},
				{now: at(1e14 + 6), want: []time.Duration{at(1e14 + 5)}},
			},
		},
		"EnteredTooLate": {
			reason: "a track entered into a past tick is popped with the next",
			steps: []step{
				{now: at(10), add: at(7)},
				{now: at(10)},
				{now: at(11), want: []time.Duration{at(7)}},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var table timetable
			table.init(lease)
			for i, step := range tt.steps {
				var got []time.Duration
				for tr := table.pop(step.now); tr != nil; tr = table.pop(step.now) {
					got = append(got, time.Duration(tr.expires.Load()))
				}
				if diff := cmp.Diff(step.want, got); diff != "" {
					t.Errorf("%s: step %d (-want +got):\n%s", tt.reason, i, diff)
				}
				if step.add != 0 {
					tr := &track{}
					tr.expires.Store(int64(step.add))
					table.add(tr)
				}
			}
		})
	}
}
