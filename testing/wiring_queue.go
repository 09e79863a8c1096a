// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/reconcilers"
)

// requestQueue is the queue of a controller. It keeps all requests to itself: they are to be looked at, not to be
// worked on.
type requestQueue struct {
	// waiting is closed once a worker asks for a request: then all sources of the controller are started and synced.
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

// take returns the requests that were added since it was called last.
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

// newQueue is what controllers make their queues with.
type newQueue = func(
	controller string, rateLimiter workqueue.TypedRateLimiter[reconcilers.Request],
) workqueue.TypedRateLimitingInterface[reconcilers.Request]

// replaceQueue has a controller use another queue. It returns false for anything but a controller of requests.
//
// What builders build has its options in exported fields, but its type is internal to controller-runtime, and builders
// let nobody add an option to those of the author.
func replaceQueue(controller manager.Runnable, queue newQueue) bool {
	value := reflect.ValueOf(controller)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return false
	}
	for _, field := range value.Elem().Fields() {
		if field.CanSet() && field.Type() == reflect.TypeFor[newQueue]() {
			field.Set(reflect.ValueOf(queue))
			return true
		}
	}
	return false
}

// controllerOptions returns the options of a controller whose queue was replaced.
func controllerOptions(controller manager.Runnable) ControllerOptions {
	options := reflect.ValueOf(controller).Elem()
	return ControllerOptions{
		MaxConcurrentReconciles: optionField[int](options, "MaxConcurrentReconciles"),
		CacheSyncTimeout:        optionField[time.Duration](options, "CacheSyncTimeout"),
		ReconciliationTimeout:   optionField[time.Duration](options, "ReconciliationTimeout"),
		RecoverPanic:            optionField[*bool](options, "RecoverPanic"),
		NeedLeaderElection:      optionField[*bool](options, "LeaderElected"),
		EnableWarmup:            optionField[*bool](options, "EnableWarmup"),
	}
}

func optionField[T any](options reflect.Value, name string) (value T) {
	if field := options.FieldByName(name); field.IsValid() {
		value, _ = field.Interface().(T)
	}
	return value
}
