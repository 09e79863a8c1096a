// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The delays of a controller's rate limiter, for requests that fail: 5 ms, doubled each time, 1,000 s at most.
// (controller-runtime, pkg/controller/controller.go, with the priority queue.)
const (
	firstDelay = 5 * time.Millisecond
	lastDelay  = 1000 * time.Second
)

// request is a request of a controller, whose name is empty for the reconciler of New.
type request struct {
	reconcile.Request

	controller string
}

// queue is the workqueue of a controller. It has a request at most once, for the earliest time it was added for. Due
// requests are taken in the order of their times.
type queue struct {
	items    []queued
	failures map[request]int
}

type queued struct {
	request request
	due     time.Time
}

func (q *queue) add(req request, due time.Time) {
	i := slices.IndexFunc(q.items, func(item queued) bool { return item.request == req })
	if i >= 0 {
		if !due.Before(q.items[i].due) {
			return
		}
		q.items = slices.Delete(q.items, i, i+1)
	}
	at := slices.IndexFunc(q.items, func(item queued) bool { return item.due.After(due) })
	if at < 0 {
		at = len(q.items)
	}
	q.items = slices.Insert(q.items, at, queued{req, due})
}

// remove removes a request.
func (q *queue) remove(req request) {
	q.items = slices.DeleteFunc(q.items, func(item queued) bool { return item.request == req })
}

// take removes and returns a request that is due.
func (q *queue) take(now time.Time) (request, bool) {
	if len(q.items) == 0 || q.items[0].due.After(now) {
		return request{}, false
	}
	req := q.items[0].request
	q.items = slices.Delete(q.items, 0, 1)
	return req, true
}

// addRateLimited adds a request after a delay, which doubles each time until forget is called.
func (q *queue) addRateLimited(req request, now time.Time) {
	if q.failures == nil {
		q.failures = map[request]int{}
	}
	delay := lastDelay
	if n := q.failures[req]; n < 18 { // 5 ms << 18 is more than the last delay
		delay = min(firstDelay<<n, lastDelay)
	}
	q.failures[req]++
	q.add(req, now.Add(delay))
}

func (q *queue) forget(req request) { delete(q.failures, req) }

// finish handles the result of a reconcile as a controller does.
func (q *queue) finish(a *activity, now time.Time) {
	switch {
	case isTerminal(a.err):
		// the request is not made again, but its failures are remembered
	case a.err != nil || a.panicked != nil:
		q.addRateLimited(a.request, now)
	case a.result.RequeueAfter > 0:
		q.forget(a.request)
		q.add(a.request, now.Add(a.result.RequeueAfter))
	case a.result.Requeue: //nolint:staticcheck // reconcilers still ask for it
		q.addRateLimited(a.request, now)
	default:
		q.forget(a.request)
	}
}
