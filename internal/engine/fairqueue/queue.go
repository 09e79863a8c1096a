// SPDX-License-Identifier: Apache-2.0

// Package fairqueue is the queue of a controller in which the namespaces take turns, within each priority, or the
// clusters, and the namespaces of each cluster. Requests of one turn have the order of controller-runtime's queue: the
// higher priority first, then what became due first.
//
// It does not wrap the priority queue of controller-runtime, which chooses the next request by itself: its order is
// private, and a delayed request becomes due inside it, without a hook. The workqueue of client-go takes its order from
// an interface. It prevents that a request runs twice at a time, merges equal requests, and has the metrics.
package fairqueue

import (
	"container/heap"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// New returns a queue in which the namespaces take turns. It has the type of NewQueue in the options of a controller.
func New(
	controller string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return By(controller, limiter, func(req reconcile.Request) (turn, within string) { return req.Namespace, "" })
}

// By returns a queue in which the requests with different results of turnOf take turns.
func By[R comparable](controller string, limiter workqueue.TypedRateLimiter[R], turnOf TurnOf[R]) *Queue[R] {
	order := newOrder(turnOf)
	return &Queue[R]{
		Typed:   workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[R]{Name: controller, Queue: order}),
		limiter: limiter,
		order:   order,
		retries: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[R]{
			Name: controller, Queue: discard[R]{},
		}),
		delayed: map[R]*delay[R]{},
	}
}

// Queue has the requests that are due in its workqueue, and those that are not yet due in a heap.
type Queue[R comparable] struct {
	*workqueue.Typed[R]
	limiter workqueue.TypedRateLimiter[R]
	order   *order[R]
	// retries counts delayed requests in the metric workqueue_retries_total, which only a delaying queue can do. It has
	// no requests: unlike it, controller-runtime forgets the delay of a request that becomes due earlier.
	retries workqueue.TypedDelayingInterface[R]

	// mu is locked before the locks of the workqueue and of the order.
	mu      sync.Mutex
	delayed map[R]*delay[R]
	delays  delays[R]
	// added numbers the delayed requests, so that those that are due at one time stay in order.
	added uint64
	// timer calls release when the first delay ends. It is nil until a request is delayed.
	timer *time.Timer
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = (*Queue[reconcile.Request])(nil)

// Add adds a request that is due.
func (q *Queue[R]) Add(req R) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

// AddAfter adds a request that is due later.
func (q *Queue[R]) AddAfter(req R, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, req)
}

// AddRateLimited adds a request that is due when the rate limiter allows it.
func (q *Queue[R]) AddRateLimited(req R) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, req)
}

// AddWithOpts adds requests. A request that was added before, and not taken since, gets the higher priority and the
// earlier time of both.
func (q *Queue[R]) AddWithOpts(o priorityqueue.AddOpts, requests ...R) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ShuttingDown() {
		return
	}
	priority := 0
	if o.Priority != nil {
		priority = *o.Priority
	}
	for _, req := range requests {
		after := o.After
		if o.RateLimited {
			if limited := q.limiter.When(req); after == 0 || limited < after {
				after = limited
			}
		}
		if after > 0 {
			q.retries.AddAfter(req, 0)
		}
		q.add(req, priority, after)
	}
	q.schedule()
}

func (q *Queue[R]) add(req R, priority int, after time.Duration) {
	if q.order.raise(req, priority) {
		return // it is due already
	}
	known := q.delayed[req]
	switch {
	case known == nil && after <= 0:
		q.due(req, priority)
	case known == nil:
		q.added++
		known = &delay[R]{request: req, priority: priority, until: time.Now().Add(after), added: q.added}
		q.delayed[req] = known
		heap.Push(&q.delays, known)
	case after <= 0:
		heap.Remove(&q.delays, known.index)
		delete(q.delayed, req)
		q.due(req, max(priority, known.priority))
	default:
		if priority > known.priority {
			q.added++
			known.priority, known.added = priority, q.added
		}
		if until := time.Now().Add(after); until.Before(known.until) {
			known.until = until
		}
		heap.Fix(&q.delays, known.index)
	}
}

// due adds a request to the workqueue.
func (q *Queue[R]) due(req R, priority int) {
	q.order.expect(req, priority)
	q.Typed.Add(req)
}

// schedule sets the timer to the end of the first delay.
func (q *Queue[R]) schedule() {
	switch {
	case len(q.delays) == 0:
		if q.timer != nil {
			q.timer.Stop()
		}
	case q.timer == nil:
		q.timer = time.AfterFunc(time.Until(q.delays[0].until), q.release)
	default:
		q.timer.Reset(time.Until(q.delays[0].until))
	}
}

// release adds the requests whose delay has ended to the workqueue.
func (q *Queue[R]) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ShuttingDown() {
		return
	}
	for now := time.Now(); len(q.delays) > 0 && !now.Before(q.delays[0].until); {
		ended := heap.Pop(&q.delays).(*delay[R])
		delete(q.delayed, ended.request)
		q.due(ended.request, ended.priority)
	}
	q.schedule()
}

// Drop drops the delayed requests that match.
func (q *Queue[R]) Drop(match func(req R) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for req, dropped := range q.delayed {
		if match(req) {
			heap.Remove(&q.delays, dropped.index)
			delete(q.delayed, req)
		}
	}
	q.schedule()
}

// Get returns the next request. It waits until one is due.
func (q *Queue[R]) Get() (req R, shutdown bool) {
	req, _, shutdown = q.GetWithPriority()
	return req, shutdown
}

// GetWithPriority returns the next request with its priority. It waits until one is due. After ShutDown it returns
// none, although requests may be left.
func (q *Queue[R]) GetWithPriority() (req R, priority int, shutdown bool) {
	if q.ShuttingDown() {
		return req, 0, true
	}
	req, shutdown = q.Typed.Get()
	priority = q.order.priorityOf(req)
	return req, priority, shutdown || q.ShuttingDown()
}

// Forget makes the rate limiter forget the failures of a request.
func (q *Queue[R]) Forget(req R) { q.limiter.Forget(req) }

// NumRequeues returns the number of failures of a request.
func (q *Queue[R]) NumRequeues(req R) int { return q.limiter.NumRequeues(req) }

// ShutDown ends the queue. The workers that wait for a request return.
func (q *Queue[R]) ShutDown() {
	q.mu.Lock()
	if q.timer != nil {
		q.timer.Stop()
	}
	q.mu.Unlock()
	q.Typed.ShutDown()
	q.retries.ShutDown()
}

// ShutDownWithDrain is ShutDown, as in the queue of controller-runtime: a controller waits for its workers itself.
func (q *Queue[R]) ShutDownWithDrain() { q.ShutDown() }

// delay is a request that is not yet due.
type delay[R comparable] struct {
	request  R
	priority int
	until    time.Time
	added    uint64
	index    int
}

// delays is a heap: the delay that ends first is the first element.
type delays[R comparable] []*delay[R]

func (d delays[R]) Len() int { return len(d) }

func (d delays[R]) Less(i, j int) bool {
	if !d[i].until.Equal(d[j].until) {
		return d[i].until.Before(d[j].until)
	}
	return d[i].added < d[j].added
}

func (d delays[R]) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

func (d *delays[R]) Push(x any) {
	added := x.(*delay[R])
	added.index = len(*d)
	*d = append(*d, added)
}

func (d *delays[R]) Pop() any {
	last := len(*d) - 1
	removed := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return removed
}

// discard is a workqueue without requests.
type discard[R comparable] struct{}

var _ workqueue.TypedInterface[reconcile.Request] = discard[reconcile.Request]{}

func (discard[R]) Add(R)                  {}
func (discard[R]) Len() int               { return 0 }
func (discard[R]) Get() (req R, end bool) { return req, true }
func (discard[R]) Done(R)                 {}
func (discard[R]) ShutDown()              {}
func (discard[R]) ShutDownWithDrain()     {}
func (discard[R]) ShuttingDown() bool     { return false }
