// SPDX-License-Identifier: Apache-2.0

// Package fairqueue is the queue of a controller in which the namespaces take turns, within each priority. Requests of
// one namespace have the order of controller-runtime's queue: the higher priority first, then what became due first.
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

// New returns a queue. It has the type of NewQueue in the options of a controller.
func New(
	controller string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	order := &order{
		known: map[reconcile.Request]*entry{}, taken: map[reconcile.Request]int{},
		turns: map[turnKey]*turn{},
	}
	return &queue{
		Typed:   workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: controller, Queue: order}),
		limiter: limiter,
		order:   order,
		retries: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
			Name: controller, Queue: discard{},
		}),
		delayed: map[reconcile.Request]*delay{},
	}
}

// queue has the requests that are due in its workqueue, and those that are not yet due in a heap.
type queue struct {
	*workqueue.Typed[reconcile.Request]
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	order   *order
	// retries counts delayed requests in the metric workqueue_retries_total, which only a delaying queue can do. It has
	// no requests: unlike it, controller-runtime forgets the delay of a request that becomes due earlier.
	retries workqueue.TypedDelayingInterface[reconcile.Request]

	// mu is locked before the locks of the workqueue and of the order.
	mu      sync.Mutex
	delayed map[reconcile.Request]*delay
	delays  delays
	// added numbers the delayed requests, so that those that are due at one time stay in order.
	added uint64
	// timer calls release when the first delay ends. It is nil until a request is delayed.
	timer *time.Timer
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = (*queue)(nil)

// Add adds a request that is due.
func (q *queue) Add(req reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

// AddAfter adds a request that is due later.
func (q *queue) AddAfter(req reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, req)
}

// AddRateLimited adds a request that is due when the rate limiter allows it.
func (q *queue) AddRateLimited(req reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, req)
}

// AddWithOpts adds requests. A request that was added before, and not taken since, gets the higher priority and the
// earlier time of both.
func (q *queue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
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

func (q *queue) add(req reconcile.Request, priority int, after time.Duration) {
	if q.order.raise(req, priority) {
		return // it is due already
	}
	known := q.delayed[req]
	switch {
	case known == nil && after <= 0:
		q.due(req, priority)
	case known == nil:
		q.added++
		known = &delay{request: req, priority: priority, until: time.Now().Add(after), added: q.added}
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
func (q *queue) due(req reconcile.Request, priority int) {
	q.order.expect(req, priority)
	q.Typed.Add(req)
}

// schedule sets the timer to the end of the first delay.
func (q *queue) schedule() {
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
func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ShuttingDown() {
		return
	}
	for now := time.Now(); len(q.delays) > 0 && !now.Before(q.delays[0].until); {
		ended := heap.Pop(&q.delays).(*delay)
		delete(q.delayed, ended.request)
		q.due(ended.request, ended.priority)
	}
	q.schedule()
}

// Get returns the next request. It waits until one is due.
func (q *queue) Get() (req reconcile.Request, shutdown bool) {
	req, _, shutdown = q.GetWithPriority()
	return req, shutdown
}

// GetWithPriority returns the next request with its priority. It waits until one is due. After ShutDown it returns
// none, although requests may be left.
func (q *queue) GetWithPriority() (req reconcile.Request, priority int, shutdown bool) {
	if q.ShuttingDown() {
		return reconcile.Request{}, 0, true
	}
	req, shutdown = q.Typed.Get()
	priority = q.order.priorityOf(req)
	return req, priority, shutdown || q.ShuttingDown()
}

// Forget makes the rate limiter forget the failures of a request.
func (q *queue) Forget(req reconcile.Request) { q.limiter.Forget(req) }

// NumRequeues returns the number of failures of a request.
func (q *queue) NumRequeues(req reconcile.Request) int { return q.limiter.NumRequeues(req) }

// ShutDown ends the queue. The workers that wait for a request return.
func (q *queue) ShutDown() {
	q.mu.Lock()
	if q.timer != nil {
		q.timer.Stop()
	}
	q.mu.Unlock()
	q.Typed.ShutDown()
	q.retries.ShutDown()
}

// ShutDownWithDrain is ShutDown, as in the queue of controller-runtime: a controller waits for its workers itself.
func (q *queue) ShutDownWithDrain() { q.ShutDown() }

// delay is a request that is not yet due.
type delay struct {
	request  reconcile.Request
	priority int
	until    time.Time
	added    uint64
	index    int
}

// delays is a heap: the delay that ends first is the first element.
type delays []*delay

func (d delays) Len() int { return len(d) }

func (d delays) Less(i, j int) bool {
	if !d[i].until.Equal(d[j].until) {
		return d[i].until.Before(d[j].until)
	}
	return d[i].added < d[j].added
}

func (d delays) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

func (d *delays) Push(x any) {
	added := x.(*delay)
	added.index = len(*d)
	*d = append(*d, added)
}

func (d *delays) Pop() any {
	last := len(*d) - 1
	removed := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return removed
}

// discard is a workqueue without requests.
type discard struct{}

var _ workqueue.TypedInterface[reconcile.Request] = discard{}

func (discard) Add(reconcile.Request)                {}
func (discard) Len() int                             { return 0 }
func (discard) Get() (_ reconcile.Request, end bool) { return reconcile.Request{}, true }
func (discard) Done(reconcile.Request)               {}
func (discard) ShutDown()                            {}
func (discard) ShutDownWithDrain()                   {}
func (discard) ShuttingDown() bool                   { return false }
