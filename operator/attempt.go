// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
)

// attempt calls the nested reconciler for a resource, if it is time to.
func (r *WithEdge[T]) attempt(ctx context.Context, resource T, gone bool) (reconcilers.Result, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return reconcilers.Result{}, stopping(ctx.Err())
	}
	t := r.begin(resource, gone)
	switch {
	case t.pending != nil && t.pending.exhausted:
		// The condition may not have been written.
		if err := r.reflect(ctx, resource, t.action, t.pending); err != nil {
			return reconcilers.Result{}, err
		}
		return reconcilers.Result{}, waiting{t.pending.err}
	case t.pending != nil && t.pending.acked:
		return reconcilers.Result{RequeueAfter: t.wait}, nil
	case t.pending != nil:
		return reconcilers.Result{RequeueAfter: t.wait}, waiting{t.pending.err}
	case t.action == ReconcileActionUnknown:
		return reconcilers.Result{}, r.reflect(ctx, resource, t.action, nil)
	}

	c := &call{
		edge: Edge{Action: t.action, Attempt: t.attempt, InitialList: t.listed}, previous: t.previous,
		state: maps.Clone(t.state),
	}
	settled := false
	defer func() {
		if !settled { // a panic passes, and is a failure as others are
			r.settle(t, gone, r.judgeFailure(ctx, t, c, reconcilers.Result{}, errPanicked, nil))
			calls.WithLabelValues(r.Name, t.action.String(), "panicked").Inc()
		}
	}()
	if gone && r.writesStatus() {
		// A handler gets a copy anyway. A tree looks at the resource itself to see that it goes.
		resource = resource.DeepCopyObject().(T)
		if !isDeleting(resource) {
			resource.SetDeletionTimestamp(new(metav1.Now()))
		}
	}
	result, err := r.Reconciler.Reconcile(c.onto(ctx), resource)
	o := r.judge(ctx, t, c, result, err)
	r.settle(t, gone, o)
	settled = true

	calls.WithLabelValues(r.Name, t.action.String(), o.label()).Inc()
	if !gone && (o.acked || o.again.exhausted) {
		if err := r.reflect(ctx, resource, t.action, o.again); err != nil {
			// Without the error of the attempt, which may say that there is no need to try again.
			return reconcilers.Result{}, err
		}
	}
	return o.result, o.err
}

var errPanicked = errors.New("the handler panicked")

// judge decides what an attempt has come to.
func (r *WithEdge[T]) judge(ctx context.Context, t turn[T], c *call, result reconcilers.Result, err error) outcome {
	after, asked, failed := asksAgain(err)
	switch {
	case asked && failed:
		return r.judgeFailure(ctx, t, c, result, err, &after)
	case asked:
		again := r.again(t, c, time.Now().Add(after), nil)
		again.attempt = t.attempt
		return outcome{again: again, result: reconcilers.Result{RequeueAfter: max(after, 1)}, err: waiting{}}
	case err != nil && !errors.Is(err, reconcilers.ErrHaltSubReconcilers):
		return r.judgeFailure(ctx, t, c, result, err, nil)
	case result.RequeueAfter > 0:
		again := r.again(t, c, time.Now().Add(result.RequeueAfter), nil)
		again.attempt, again.acked = 0, t.action != ReconcileActionDeleted
		if t.action == ReconcileActionDeleted {
			// Whoever clears the finalizer must not do so yet.
			return outcome{again: again, result: result, err: waiting{}}
		}
		return outcome{acked: true, again: again, result: result, err: err}
	}
	return outcome{acked: true, result: result, err: err}
}

// judgeFailure decides what comes of a failure. requested is when the handler itself wants to be called again: then no
// policy is asked, the failure does not count as an attempt, and even an error for which there is no point in it is
// retried.
func (r *WithEdge[T]) judgeFailure(
	ctx context.Context, t turn[T], c *call, result reconcilers.Result, err error, requested *time.Duration,
) outcome {
	if r.OnError != nil {
		r.OnError(ctx, t.resource, err)
	}
	retry, after := true, time.Duration(0)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		// The controller is being stopped. That is nobody's failure.
		again := r.again(t, c, time.Time{}, err)
		again.attempt = t.attempt
		return outcome{again: again, err: stopping(err)}
	case requested != nil:
		if after = max(*requested, 1); isTerminal(err) {
			err = errors.New(err.Error()) // it is retried all the same, which nobody may take for the end
		}
	case isTerminal(err):
		retry = false
	case r.RetryPolicy != nil && !errors.Is(err, reconcilers.ErrQuiet):
		retry, after = r.RetryPolicy(err, t.attempt)
	}
	again := r.again(t, c, time.Now().Add(after), err)
	if requested != nil {
		again.attempt = t.attempt
	}
	log := logr.FromContextOrDiscard(ctx)
	switch {
	case !retry:
		again.exhausted = true
		exhausted.WithLabelValues(r.Name).Inc()
		// the error is returned
		log.Info(
			"giving up until the resource changes", "action", t.action.String(), "attempts", t.attempt+1, "reason", err.Error(),
		)
		r.emit(
			ctx, t, "RetriesExhausted", "Giving up on %s after %d attempts, until the resource changes: %v", t.action,
			t.attempt+1, err,
		)
		if r.OnExhausted != nil {
			r.OnExhausted(ctx, t.resource, err)
		}
		return outcome{again: again, err: reconcile.TerminalError(err)}
	case after <= 0:
		again.calm = time.Now().Add(rateLimited(t.attempt))
		if !errors.Is(err, reconcilers.ErrQuiet) {
			result = reconcilers.Result{} // the rate limiter tells the time
		}
		return outcome{again: again, result: result, err: err}
	}
	if errors.Is(err, reconcilers.ErrQuiet) {
		return outcome{again: again, result: reconcilers.Result{RequeueAfter: after}, err: waiting{err}}
	}
	log.Error(
		err, "handler failed", "action", t.action.String(), "attempt", t.attempt, "retryAfter",
		after.Round(time.Millisecond).String(),
	)
	// Without the time: events with the same text become one.
	r.emit(ctx, t, "HandlerFailed", "%s failed, it will be tried again: %v", t.action, err)
	return outcome{again: again, result: reconcilers.Result{RequeueAfter: after}, err: waiting{err}}
}

// again is the same turn once more, after a failure.
func (r *WithEdge[T]) again(t turn[T], c *call, due time.Time, err error) *pending {
	return &pending{action: t.action, object: t.snapshot, attempt: t.attempt + 1, due: due, state: c.state, err: err}
}

func (r *WithEdge[T]) emit(ctx context.Context, t turn[T], reason, format string, args ...any) {
	if config, err := reconcilers.RetrieveOriginalConfig(ctx); err == nil && config.Recorder != nil {
		config.Recorder.Eventf(t.resource, corev1.EventTypeWarning, reason, format, args...)
	}
}

// rateLimited is how long the rate limiter of a controller waits after so many failures, unless it was replaced.
func rateLimited(failures int) time.Duration {
	const first, last = 5 * time.Millisecond, 1000 * time.Second
	return min(first<<min(failures, 20), last)
}

// stopping is an error that comes of the controller being stopped.
func stopping(err error) error {
	return errors.Join(reconcilers.ErrQuiet, err)
}

// isTerminal is true for errors that trying again does not help against.
func isTerminal(err error) bool {
	var mismatch *CannotCastError
	return errors.Is(err, reconcile.TerminalError(nil)) || errors.As(err, &mismatch)
}

// waiting stops the reconcilers that follow, and says that the next attempt has its time, or will not be before
// something happens: the failure is logged already, and the rate limiter is not for it.
type waiting struct{ cause error }

func (w waiting) Error() string {
	if w.cause == nil {
		return "waiting to be called again"
	}
	return fmt.Sprintf("waiting for the next attempt: %v", w.cause)
}

func (w waiting) Unwrap() []error {
	if w.cause == nil {
		return []error{reconcilers.ErrRetryAfter}
	}
	return []error{reconcilers.ErrRetryAfter, w.cause}
}

func (o outcome) label() string {
	switch {
	case o.acked && o.again == nil:
		return "done"
	case o.again.exhausted:
		return "exhausted"
	case o.again.err == nil:
		return "requeued"
	}
	return "failed"
}
