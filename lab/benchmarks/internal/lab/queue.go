// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is the default queue of a controller, with counters. Reconciles are counted here, because the queue is the same
// for every contender.
type queue struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	mu    sync.Mutex
	count queueCount
	// recorded has the number of adds of each request since record. It is nil while not recording.
	recorded  map[reconcile.Request]int
	lastAdded time.Time
	// firstTaken is the start of the first reconcile, and lastDone the end of the last one.
	firstTaken, lastDone time.Time
	// waiting is closed when done reaches target.
	target  int
	waiting chan struct{}
	// timed is the request whose time in the queue is recorded: since is when a worker could have taken it, and waits are
	// the times. While the request is reconciled, no other worker can take it.
	timed   reconcile.Request
	since   time.Time
	waits   []time.Duration
	running bool
	// again reports whether the request was added while it is reconciled.
	again bool
}

// queueCount has the counters of a queue.
type queueCount struct{ added, taken, done int }

func newQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request], log logr.Logger) *queue {
	return &queue{PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) {
		o.RateLimiter, o.Log = limiter, log
	})}
}

func (q *queue) Add(item reconcile.Request) {
	q.adding(item)
	q.due(item)
	q.PriorityQueue.Add(item)
}

func (q *queue) AddAfter(item reconcile.Request, after time.Duration) {
	q.adding(item)
	q.PriorityQueue.AddAfter(item, after)
}

func (q *queue) AddRateLimited(item reconcile.Request) {
	q.adding(item)
	q.PriorityQueue.AddRateLimited(item)
}

func (q *queue) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	q.adding(items...)
	if o.After == 0 && !o.RateLimited {
		q.due(items...)
	}
	q.PriorityQueue.AddWithOpts(o, items...)
}

func (q *queue) GetWithPriority() (reconcile.Request, int, bool) {
	item, priority, shutdown := q.PriorityQueue.GetWithPriority()
	if !shutdown {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.count.taken++; q.count.taken == 1 {
			q.firstTaken = time.Now()
		}
		if item == q.timed {
			q.running = true
			if !q.since.IsZero() {
				q.waits, q.since = append(q.waits, time.Since(q.since)), time.Time{}
			}
		}
	}
	return item, priority, shutdown
}

func (q *queue) Get() (reconcile.Request, bool) {
	item, _, shutdown := q.GetWithPriority()
	return item, shutdown
}

func (q *queue) Done(item reconcile.Request) {
	q.left(item)
	q.PriorityQueue.Done(item)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count.done++
	q.lastDone = time.Now()
	if q.waiting != nil && q.count.done >= q.target {
		close(q.waiting)
		q.waiting = nil
	}
}

// left records that a request is no longer reconciled.
func (q *queue) left(item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if item != q.timed {
		return
	}
	if q.again {
		q.since = time.Now()
	}
	q.running, q.again = false, false
}

func (q *queue) adding(items ...reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count.added += len(items)
	if q.recorded != nil {
		for _, item := range items {
			q.recorded[item]++
		}
		q.lastAdded = time.Now()
	}
}

// due records that requests are added without a delay.
func (q *queue) due(items ...reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !slices.Contains(items, q.timed):
	case q.running:
		q.again = true
	case q.since.IsZero():
		q.since = time.Now()
	}
}

// takeWaits returns how long the requests for an object were in the queue since the last call.
func (q *queue) takeWaits(of types.NamespacedName) []time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	waits := q.waits
	q.timed, q.waits = reconcile.Request{NamespacedName: of}, nil
	return waits
}

func (q *queue) counted() queueCount {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

func (q *queue) started() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.firstTaken
}

func (q *queue) ended() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lastDone
}

// record starts to record adds.
func (q *queue) record() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.recorded = map[reconcile.Request]int{}
}

// playback returns the recorded adds, and the time of the last one. It stops recording.
func (q *queue) playback() (map[reconcile.Request]int, time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	recorded := maps.Clone(q.recorded)
	q.recorded = nil
	return recorded, q.lastAdded
}

// after returns a channel that is closed after that many more reconciles. Only one such channel can exist at a time.
func (q *queue) after(reconciles int) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.target = q.count.done + reconciles
	q.waiting = make(chan struct{})
	return q.waiting
}
