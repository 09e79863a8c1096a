// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/observe"
)

const (
	// firstReflectedRetry and lastReflectedRetry are the minimum and maximum delay before the retry of a reflected
	// error. Quotas and permissions change rarely, and each attempt costs a write.
	firstReflectedRetry = 10 * time.Second
	lastReflectedRetry  = 5 * time.Minute
)

// ReasonFieldConflict is the reason of a [FieldConflictError] among [ChildReconciler].ReflectedChildErrorReasons.
const ReasonFieldConflict metav1.StatusReason = "FieldConflict"

// defaultReflectedReasons are the reasons of errors that concern the child and not the state of the cluster.
var defaultReflectedReasons = []metav1.StatusReason{
	metav1.StatusReasonAlreadyExists, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid,
	metav1.StatusReasonRequestEntityTooLarge, ReasonFieldConflict, ReasonFieldsKept,
}

// reasonOf returns the reason of an error of the API server. An object above the limit of etcd, which is below the
// limit of the API server, is an internal error there.
func reasonOf(err error) metav1.StatusReason {
	reason := apierrs.ReasonForError(err)
	if isTooLarge(err) {
		return metav1.StatusReasonRequestEntityTooLarge
	}
	return reason
}

// isTooLarge reports whether the API server, its database, or the connection between them refuses an object because of
// its size.
func isTooLarge(err error) bool {
	return apierrs.IsRequestEntityTooLargeError(err) ||
		strings.Contains(err.Error(), "etcdserver: request is too large") ||
		strings.Contains(err.Error(), "trying to send message larger than max")
}

// reflectedErrorsOf decides which errors of children are reflected on the status of their parents.
type reflectedErrorsOf struct {
	// reasons are those of errors that are reflected at once.
	reasons []metav1.StatusReason
	// attempts is the number of failed attempts in a row after which any error is reflected. 0 means never.
	attempts int
	// failed has the number of failed attempts by the id of the child.
	failed perItem[map[string]int]
}

// persists counts a failed attempt, and reports whether the error is reflected because there were enough. The error is
// then retried like other reflected errors. A conflict only says that the caches are not up to date, and is retried at
// once.
func (r *reflectedErrorsOf) persists(ctx context.Context, parent client.Object, id string, err error) bool {
	if r.attempts <= 0 || isQuiet(err) || ctx.Err() != nil || apierrs.IsConflict(err) {
		return false
	}
	before, _ := r.failed.get(ctx, parent)
	after := maps.Clone(before)
	if after == nil {
		after = map[string]int{}
	}
	after[id]++
	now := time.Now()
	r.failed.put(ctx, parent, after, now, now.Add(stateTTL))
	if after[id] < r.attempts {
		return false
	}
	reflectedFrom(ctx).note(cmp.Or(reasonOf(err), "Unknown"), false)
	return true
}

// succeeded forgets the failed attempts of a child.
func (r *reflectedErrorsOf) succeeded(ctx context.Context, parent client.Object, id string) {
	if r.attempts <= 0 {
		return
	}
	before, _ := r.failed.get(ctx, parent)
	if _, failed := before[id]; !failed {
		return
	}
	after := maps.Clone(before)
	delete(after, id)
	now := time.Now()
	r.failed.put(ctx, parent, after, now, now.Add(stateTTL))
}

// reflected records that a request has reflected errors of children. It is safe for concurrent use.
type reflected struct {
	reconciler string
	config     *Config
	ctx        context.Context //nolint:containedctx // the errors belong to the run of the request
	// retry reports whether at least one error must be retried, because no event announces a change.
	retry atomic.Bool
	// failed reports whether at least one error was reflected.
	failed atomic.Bool
}

// note records an error. watched reports whether an event announces a change. note does nothing on a nil receiver.
func (r *reflected) note(reason metav1.StatusReason, watched bool) {
	if r == nil {
		return
	}
	r.config.Hub().Report(r.ctx, &observe.ErrorReflected{Reconciler: r.reconciler, Reason: string(reason)})
	r.failed.Store(true)
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

// reflectedRetries schedules the retries of resources with reflected errors. The zero value is ready to use. It is safe
// for concurrent use.
type reflectedRetries struct {
	mu       sync.Mutex
	byObject map[Request]reflectedRetry
}

type reflectedRetry struct {
	delay time.Duration
	due   time.Time
}

// next returns the delay until the resource must be reconciled again, or 0 if no retry is needed. The delay doubles
// with each retry that was due. Earlier reconciles, caused by events, do not postpone the retry.
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

// retryReflected returns the result of a request that did not fail. In a controller it adds the retry of reflected
// errors.
func (r *request) retryReflected(result Result) Result {
	if !r.byController {
		return result
	}
	after := r.requests.retries.next(r.scope.request, r.reflected.retry.Load(), time.Now())
	return AggregateResults(result, Result{RequeueAfter: after})
}
