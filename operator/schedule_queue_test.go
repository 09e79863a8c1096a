// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"maps"
	"slices"
	"time"
)

// scheduleQueue is the queue of a controller: one entry for each name, at the earliest time for which it was added,
// and one worker at a time for each name.
type scheduleQueue struct {
	at       map[string]time.Time
	failures map[string]int
	working  map[string]bool
}

func newScheduleQueue() scheduleQueue {
	return scheduleQueue{at: map[string]time.Time{}, failures: map[string]int{}, working: map[string]bool{}}
}

func (q *scheduleQueue) add(name string, after time.Duration) {
	at := time.Now().Add(after)
	if queued, ok := q.at[name]; !ok || at.Before(queued) {
		q.at[name] = at
	}
}

func (q *scheduleQueue) addRateLimited(name string) {
	const first, last = 5 * time.Millisecond, 1000 * time.Second
	q.add(name, min(first<<min(q.failures[name], 30), last))
	q.failures[name]++
}

func (q *scheduleQueue) forget(name string) { delete(q.failures, name) }

func (q *scheduleQueue) begin(name string) {
	delete(q.at, name)
	q.working[name] = true
}

func (q *scheduleQueue) end(name string) { delete(q.working, name) }

// due returns the names that can be handled now.
func (q *scheduleQueue) due() []string {
	var due []string
	for _, name := range scheduleNames {
		if at, ok := q.at[name]; ok && !q.working[name] && !at.After(time.Now()) {
			due = append(due, name)
		}
	}
	return due
}

// wait advances the time until an entry is due, and returns false if the queue is empty.
func (q *scheduleQueue) wait() bool {
	if len(q.at) == 0 {
		return false
	}
	time.Sleep(time.Until(slices.MinFunc(slices.Collect(maps.Values(q.at)), time.Time.Compare)))
	return true
}
