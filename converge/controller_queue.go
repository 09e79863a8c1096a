// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

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
	process *process
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
		return !c.process.busy()
	}
	return len(c.workers) > 0 && c.running[req] == nil
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
	case isTerminal(a.err):
		// the request is not made again, but its failures are remembered
	case a.err != nil || a.panicked != nil:
		c.AddRateLimited(a.Request)
	case a.result.RequeueAfter > 0:
		c.Forget(a.Request)
		c.AddAfter(a.Request, a.result.RequeueAfter)
	case a.result.Requeue: //nolint:staticcheck // reconcilers still ask for it
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
			request: request{Request: req, program: c.process.program.index, controller: c.name}, queue: c,
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
	c.process.run.wake()
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
	c.process.run.wake()
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
