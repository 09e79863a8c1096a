// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue keeps the requests of a controller for the planner. The workers of the controller get none of them.
type queue struct {
	name       string
	reconciler reconcile.Reconciler
	runnable   ctrlmanager.Runnable

	start, stop      sync.Once
	started, stopped chan struct{}

	mu      sync.Mutex
	waiting []reconcile.Request
}

var _ workqueue.TypedRateLimitingInterface[reconcile.Request] = (*queue)(nil)

// take returns the next request.
func (q *queue) take() (reconcile.Request, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return reconcile.Request{}, false
	}
	request := q.waiting[0]
	q.waiting = q.waiting[1:]
	return request, true
}

// clear removes all requests.
func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = nil
}

// Add adds a request, unless it waits already.
func (q *queue) Add(request reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !slices.Contains(q.waiting, request) {
		q.waiting = append(q.waiting, request)
	}
}

// AddAfter adds a request at once: a plan does not wait.
func (q *queue) AddAfter(request reconcile.Request, _ time.Duration) { q.Add(request) }

// AddRateLimited adds a request at once: a plan does not wait.
func (q *queue) AddRateLimited(request reconcile.Request) { q.Add(request) }

// Get blocks the workers of the controller. They are started when all handlers of its watches are.
func (q *queue) Get() (reconcile.Request, bool) {
	q.start.Do(func() { close(q.started) })
	<-q.stopped
	return reconcile.Request{}, true
}

// Len returns the number of requests that wait.
func (q *queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// ShutDown lets the workers end.
func (q *queue) ShutDown() { q.stop.Do(func() { close(q.stopped) }) }

// ShutDownWithDrain is ShutDown.
func (q *queue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown reports whether the queue was shut down.
func (q *queue) ShuttingDown() bool {
	select {
	case <-q.stopped:
		return true
	default:
		return false
	}
}

// Done, Forget and NumRequeues do nothing: workers get no requests.
func (q *queue) Done(reconcile.Request)            {}
func (q *queue) Forget(reconcile.Request)          {}
func (q *queue) NumRequeues(reconcile.Request) int { return 0 }
