// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const (
	// firstReflectedRetry and lastReflectedRetry bound the time until a child is tried again whose error was reflected on
	// the parent. Quotas and permissions change rarely, and each attempt costs a write.
	firstReflectedRetry = 10 * time.Second
	lastReflectedRetry  = 5 * time.Minute
)

var reflectedErrors = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "trueup_reflected_errors_total",
	Help: "Errors of children that were reflected on the status of the parent instead of being returned.",
}, []string{"reconciler", "reason"})

func init() {
	metrics.Registry.MustRegister(reflectedErrors)
}

// reflected notes that one request has reflected errors of children. It is safe for concurrent use.
type reflected struct {
	reconciler string
	// retry reports whether no event announces the end of one of the errors.
	retry atomic.Bool
}

// note notes an error. The end of one that is watched is announced by an event. A nil reflected does nothing.
func (r *reflected) note(reason metav1.StatusReason, watched bool) {
	if r == nil {
		return
	}
	reflectedErrors.WithLabelValues(r.reconciler, string(reason)).Inc()
	if !watched {
		r.retry.Store(true)
	}
}

func reflectedFrom(ctx context.Context) *reflected {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		return s.reflected
	}
	return nil
}

// reflectedRetries tells when resources are reconciled again for the sake of the children whose errors were reflected.
// The zero value is ready to use, concurrently too.
type reflectedRetries struct {
	mu       sync.Mutex
	byObject map[Request]reflectedRetry
}

type reflectedRetry struct {
	delay time.Duration
	due   time.Time
}

// next returns the time until the resource should be reconciled again, 0 for no need. The delay doubles with each
// attempt that was due; attempts that come earlier, because something has changed, do not postpone it.
func (r *reflectedRetries) next(req Request, failing bool, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	retry, known := r.byObject[req]
	if !failing {
		if known {
			delete(r.byObject, req)
		}
		return 0
	}
	if !known {
		retry.delay = firstReflectedRetry / 2
	}
	if !now.Before(retry.due) {
		retry.delay = min(2*retry.delay, lastReflectedRetry)
		retry.due = now.Add(retry.delay)
	}
	if r.byObject == nil {
		r.byObject = map[Request]reflectedRetry{}
	}
	r.byObject[req] = retry
	return retry.due.Sub(now)
}

// retryReflected returns the result of a request that did not fail, in a controller with a retry for the errors that
// were reflected.
func (r *request) retryReflected(result Result) Result {
	if !r.byController {
		return result
	}
	after := r.requests.retries.next(r.scope.request, r.reflected.retry.Load(), time.Now())
	return AggregateResults(result, Result{RequeueAfter: after})
}
