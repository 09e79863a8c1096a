// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// request is a request of a controller of a program, whose name is empty for the reconciler of New.
type request struct {
	reconcile.Request

	// program is the index of the program.
	program    int
	controller string
}

// queue has the requests of all controllers of a process. It has a request of a controller at most once, for the
// earliest time it was added for. Controllers and handlers add requests, the loop takes those that are due.
type queue struct {
	// turn is the number of the present turn of the loop. Requests that are added in the same turn are sorted, because
	// several goroutines may add them.
	turn atomic.Int64

	mu sync.Mutex
	// items are sorted by the time they are due.
	items []queued
}

type queued struct {
	request

	queue    *controllerQueue
	due      time.Time
	turn     int64
	priority int
	// delay is how long it has to wait, and retry is set if that is due to failures.
	delay time.Duration
	retry bool
	// cause is the version of the last event that has led to the request, or 0.
	cause int64
}

func (q queued) compare(other queued) int {
	return cmp.Or(
		q.due.Compare(other.due), cmp.Compare(q.turn, other.turn), strings.Compare(q.controller, other.controller),
		strings.Compare(q.Namespace, other.Namespace), strings.Compare(q.Name, other.Name),
	)
}

// index returns the position of a request, or -1.
func (q *queue) index(c *controllerQueue, req reconcile.Request) int {
	return slices.IndexFunc(q.items, func(item queued) bool { return item.queue == c && item.Request == req })
}

// add adds a request. If it is queued already it has the higher priority of both.
func (q *queue) add(item queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	item.due, item.turn = time.Now().Add(item.delay), q.turn.Load()
	if i := q.index(item.queue, item.Request); i >= 0 {
		before := q.items[i]
		priority := max(item.priority, before.priority)
		cause := cmp.Or(item.cause, before.cause)
		if !item.due.Before(before.due) {
			item = before
		}
		item.priority, item.cause = priority, cause
		q.items = slices.Delete(q.items, i, i+1)
	}
	at, _ := slices.BinarySearchFunc(q.items, item, queued.compare)
	q.items = slices.Insert(q.items, at, item)
}

// remove removes and returns a request.
func (q *queue) remove(c *controllerQueue, req reconcile.Request) (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.index(c, req)
	if i < 0 {
		return queued{}, false
	}
	item := q.items[i]
	q.items = slices.Delete(q.items, i, i+1)
	return item, true
}

// all yields the requests, while it holds the lock.
func (q *queue) all() iter.Seq[queued] {
	return func(yield func(queued) bool) {
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, item := range q.items {
			if !yield(item) {
				return
			}
		}
	}
}

// empty reports whether no request is queued.
func (q *queue) empty() bool {
	for range q.all() {
		return false
	}
	return true
}

// has reports whether a request is queued.
func (q *queue) has(req request) bool {
	for item := range q.all() {
		if item.request == req {
			return true
		}
	}
	return false
}

// take removes and returns the request that is the next one to be reconciled: the first one of those with the highest
// priority that are due and whose controller can start a reconcile.
func (q *queue) take(due func(queued) time.Time) (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.firstIndex(due)
	if at < 0 {
		return queued{}, false
	}
	item := q.items[at]
	q.items = slices.Delete(q.items, at, at+1)
	return item, true
}

// first returns the request that take would return.
func (q *queue) first(due func(queued) time.Time) (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := q.firstIndex(due); at >= 0 {
		return q.items[at], true
	}
	return queued{}, false
}

// firstIndex returns the index of the request that is the next one to be reconciled, or -1.
func (q *queue) firstIndex(due func(queued) time.Time) int {
	now, at := time.Now(), -1
	for i, item := range q.items {
		if item.due.After(now) {
			break
		}
		if (at < 0 || item.priority > q.items[at].priority) && item.queue.canStart(item.Request) && !due(item).After(now) {
			at = i
		}
	}
	return at
}
