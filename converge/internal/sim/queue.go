// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/world"
)

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
	world.RequestOf

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
		q.due.Compare(other.due), cmp.Compare(q.turn, other.turn), strings.Compare(q.Controller, other.Controller),
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
func (q *queue) has(req world.RequestOf) bool {
	for item := range q.all() {
		if item.RequestOf == req {
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

// The delays of a controller's rate limiter, for requests that fail: 5 ms, doubled each time, 1,000 s at most.
// (controller-runtime, pkg/controller/controller.go, with the priority queue.)
const (
	firstDelay = 5 * time.Millisecond
	lastDelay  = 1000 * time.Second
)

func newRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstDelay, lastDelay)
}

// controllerQueue is the workqueue of one controller: its part of the queue of its process. Unlike the queues of
// controller-runtime it has no goroutines and no timers, so that the loop knows what is due at which time, and decides
// which request is next.
type controllerQueue struct {
	process *Process
	name    string
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	// shadow is set for a controller that has a queue of its own. Then this one only has its requeues, which decide
	// whether the process is idle.
	shadow bool

	// The lock of the queue of the process guards the following fields.

	// workers wait for a request.
	workers []chan queued
	// running are the reconciles that the controller has started.
	running map[reconcile.Request]*activity
	down    bool
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = (*controllerQueue)(nil)

// canStart reports whether the controller can start a reconcile of a request at once. The queue must be locked.
func (c *controllerQueue) canStart(req reconcile.Request) bool {
	if c.process.reconciler != nil {
		return !c.process.busy() && !c.process.paused
	}
	return len(c.workers) > 0 && c.running[req] == nil && !c.process.paused
}

// start starts a reconcile of a request that was taken.
func (c *controllerQueue) start(item queued, a *activity) {
	p := c.process
	if p.reconciler != nil {
		go p.reconcile(p.ctx, a, p.reconciler, false)
		return
	}
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	worker := c.workers[0]
	c.workers = slices.Delete(c.workers, 0, 1)
	if c.running == nil {
		c.running = map[reconcile.Request]*activity{}
	}
	c.running[item.Request] = a
	worker <- item
}

// started returns the reconcile that was started for a request, or nil if the controller has a queue of its own.
func (c *controllerQueue) started(req reconcile.Request) *activity {
	c.process.queue.mu.Lock()
	defer c.process.queue.mu.Unlock()
	return c.running[req]
}

// finish handles the result of a reconcile as a controller does.
func (c *controllerQueue) finish(a *activity) {
	switch {
	case world.IsTerminal(a.Err):
		// the request is not made again, but its failures are remembered
	case a.Err != nil || a.Panicked != nil:
		c.AddRateLimited(a.Request)
	case a.Result.RequeueAfter > 0:
		c.Forget(a.Request)
		c.AddAfter(a.Request, a.Result.RequeueAfter)
	case a.Result.Requeue: //nolint:staticcheck // reconcilers still ask for it
		c.AddRateLimited(a.Request)
	default:
		c.Forget(a.Request)
	}
}

// Add adds a request that is due.
func (c *controllerQueue) Add(req reconcile.Request) { c.AddWithOpts(priorityqueue.AddOpts{}, req) }

// AddAfter adds a request that is due later.
func (c *controllerQueue) AddAfter(req reconcile.Request, delay time.Duration) {
	c.AddWithOpts(priorityqueue.AddOpts{After: delay}, req)
}

// AddRateLimited adds a request that is due when the rate limiter allows it.
func (c *controllerQueue) AddRateLimited(req reconcile.Request) {
	c.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, req)
}

// AddWithOpts adds requests.
func (c *controllerQueue) AddWithOpts(options priorityqueue.AddOpts, requests ...reconcile.Request) {
	if c.ShuttingDown() {
		return
	}
	for _, req := range requests {
		item := queued{
			RequestOf: world.RequestOf{Request: req, Program: c.process.program.Index, Controller: c.name}, queue: c,
			delay: max(options.After, 0),
			retry: options.RateLimited,
		}
		if item.delay == 0 && !item.retry {
			item.cause = c.process.arriving.Load()
			c.process.noticed(item)
		}
		if options.RateLimited {
			if delay := c.limiter.When(req); item.delay == 0 || delay < item.delay {
				item.delay = delay
			}
		}
		if options.Priority != nil {
			item.priority = *options.Priority
		}
		c.process.queue.add(item)
	}
	c.process.scheduler.wake()
}

// Get waits for a request.
func (c *controllerQueue) Get() (reconcile.Request, bool) {
	req, _, shutdown := c.GetWithPriority()
	return req, shutdown
}

// GetWithPriority waits for a request.
func (c *controllerQueue) GetWithPriority() (req reconcile.Request, priority int, shutdown bool) {
	q := &c.process.queue
	q.mu.Lock()
	if c.down {
		q.mu.Unlock()
		return reconcile.Request{}, 0, true
	}
	worker := make(chan queued, 1)
	c.workers = append(c.workers, worker)
	q.mu.Unlock()
	c.process.scheduler.wake()
	item, ok := <-worker
	return item.Request, item.priority, !ok
}

// Done records that the reconcile of a request has ended.
func (c *controllerQueue) Done(req reconcile.Request) {
	c.process.queue.mu.Lock()
	defer c.process.queue.mu.Unlock()
	delete(c.running, req)
}

// Forget makes the rate limiter forget the failures of a request.
func (c *controllerQueue) Forget(req reconcile.Request) { c.limiter.Forget(req) }

// NumRequeues returns the number of failures of a request.
func (c *controllerQueue) NumRequeues(req reconcile.Request) int { return c.limiter.NumRequeues(req) }

// Len returns the number of requests that are due.
func (c *controllerQueue) Len() int {
	q := &c.process.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	now, n := time.Now(), 0
	for _, item := range q.items {
		if item.queue == c && !item.due.After(now) {
			n++
		}
	}
	return n
}

// ShutDown makes the workers end.
func (c *controllerQueue) ShutDown() {
	c.process.queue.mu.Lock()
	defer c.process.queue.mu.Unlock()
	c.down = true
	for _, worker := range c.workers {
		close(worker)
	}
	c.workers = nil
}

// ShutDownWithDrain is ShutDown: controllers do not use it.
func (c *controllerQueue) ShutDownWithDrain() { c.ShutDown() }

// ShuttingDown reports whether the workers end.
func (c *controllerQueue) ShuttingDown() bool {
	c.process.queue.mu.Lock()
	defer c.process.queue.mu.Unlock()
	return c.down || c.process.dead.Load()
}
