// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"trueup.dev/reconcilers"
)

// requestQueue is the queue of a controller. It collects requests and gives none to the workers.
type requestQueue struct {
	// waiting is called when a worker asks for a request: all sources of the controller have started and synced then.
	waiting func()
	down    chan struct{}

	mu       sync.Mutex
	requests []reconcilers.Request
}

var _ workqueue.TypedRateLimitingInterface[reconcilers.Request] = (*requestQueue)(nil)

func (q *requestQueue) Add(request reconcilers.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = append(q.requests, request)
}

// take returns the requests that were added since the last call.
func (q *requestQueue) take() []reconcilers.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.requests
	q.requests = nil
	return taken
}

func (q *requestQueue) Get() (reconcilers.Request, bool) {
	q.waiting()
	<-q.down
	return reconcilers.Request{}, true
}

func (q *requestQueue) ShuttingDown() bool {
	select {
	case <-q.down:
		return true
	default:
		return false
	}
}

func (q *requestQueue) AddAfter(request reconcilers.Request, _ time.Duration) { q.Add(request) }
func (q *requestQueue) AddRateLimited(request reconcilers.Request)            { q.Add(request) }
func (q *requestQueue) Done(reconcilers.Request)                              {}
func (q *requestQueue) Forget(reconcilers.Request)                            {}
func (q *requestQueue) NumRequeues(reconcilers.Request) int                   { return 0 }
func (q *requestQueue) Len() int                                              { return 0 }
func (q *requestQueue) ShutDown()                                             { close(q.down) }
func (q *requestQueue) ShutDownWithDrain()                                    { q.ShutDown() }
