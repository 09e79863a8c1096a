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

	"trueup.dev/observe"
	"trueup.dev/reconcilers"
)

// attempt calls the nested reconciler for a resource if an attempt is due.
func (r *WithEdge[T]) attempt(ctx context.Context, resource T, absent bool) (reconcilers.Result, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return reconcilers.Result{}, stopping(ctx.Err())
	}
	t := r.begin(resource, absent)
	switch {
	case t.pending != nil && t.pending.exhausted:
		// The earlier write of the condition may have failed.
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
		if !settled { // the panic propagates, and counts as a failure
			o := r.judgeFailure(ctx, t, c, reconcilers.Result{}, errPanicked, nil)
			r.settle(t, absent, o)
			r.report(ctx, t.action, "panicked", o)
		}
	}()
	if absent && r.writesStatus() {
		// A leaf copies the resource anyway. A tree checks the deletion timestamp of the resource itself.
		resource = resource.DeepCopyObject().(T)
		if !isDeleting(resource) {
			resource.SetDeletionTimestamp(new(metav1.Now()))
		}
	}
	result, err := r.Reconciler.Reconcile(c.onto(ctx), resource)
	o := r.judge(ctx, t, c, result, err)
	r.settle(t, absent, o)
	settled = true

	r.report(ctx, t.action, o.label(), o)
	if !absent && (o.acked || o.again.exhausted) {
		if err := r.reflect(ctx, resource, t.action, o.again); err != nil {
			// Omit the error of the attempt: if it is terminal, the condition would not be written again.
			return reconcilers.Result{}, err
		}
	}
	return o.result, o.err
}

var errPanicked = errors.New("the handler panicked")

// judge decides on the outcome of an attempt.
func (r *WithEdge[T]) judge(ctx context.Context, t turn[T], c *call, result reconcilers.Result, err error) outcome {
	after, requested, failed := requestedDelay(err)
	switch {
	case requested && failed:
		return r.judgeFailure(ctx, t, c, result, err, &after)
	case requested:
		again := r.again(t, c, time.Now().Add(after), nil)
		again.attempt = t.attempt
		result = reconcilers.Result{RequeueAfter: max(after, 1), Priority: result.Priority}
		return outcome{again: again, result: result, err: waiting{}}
	case err != nil && !errors.Is(err, reconcilers.ErrHaltSubReconcilers):
		return r.judgeFailure(ctx, t, c, result, err, nil)
	case result.RequeueAfter > 0:
		again := r.again(t, c, time.Now().Add(result.RequeueAfter), nil)
		again.attempt, again.acked = 0, t.action != ReconcileActionDeleted
		if t.action == ReconcileActionDeleted {
			// The finalizer must not be cleared yet.
			return outcome{again: again, result: result, err: waiting{}}
		}
		return outcome{acked: true, again: again, result: result, err: err}
	}
	return outcome{acked: true, result: result, err: err}
}

// report reports a finished call.
func (r *WithEdge[T]) report(ctx context.Context, action ReconcileAction, result string, o outcome) {
	r.events().Report(ctx, &observe.HandlerCalled{
		Handler: r.Name, Action: action.String(), Result: result, Exhausted: o.again != nil && o.again.exhausted,
	})
}

// judgeFailure decides on the outcome of a failed attempt. requested is set if the handler itself requested another
// call. Then the policy is not called, the failure does not count as an attempt, and even a terminal error is retried.
func (r *WithEdge[T]) judgeFailure(
	ctx context.Context, t turn[T], c *call, result reconcilers.Result, err error, requested *time.Duration,
) outcome {
	if r.OnError != nil {
		r.OnError(ctx, t.resource, err)
	}
	retry, after := true, time.Duration(0)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		// The controller is stopping: this is not a failure.
		again := r.again(t, c, time.Time{}, err)
		again.attempt = t.attempt
		return outcome{again: again, err: stopping(err)}
	case requested != nil:
		if after = max(*requested, 1); isTerminal(err) {
			err = errors.New(err.Error()) // it is retried, so it must not look terminal
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
		// Info and not Error, because controller-runtime logs the returned error.
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
		again.quietUntil = time.Now().Add(rateLimited(t.attempt))
		if !errors.Is(err, reconcilers.ErrQuiet) {
			result = reconcilers.Result{Priority: result.Priority} // the rate limiter decides when
		}
		return outcome{again: again, result: result, err: err}
	}
	result = reconcilers.Result{RequeueAfter: after, Priority: result.Priority}
	if errors.Is(err, reconcilers.ErrQuiet) {
		return outcome{again: again, result: result, err: waiting{err}}
	}
	log.Error(
		err, "handler failed", "action", t.action.String(), "attempt", t.attempt, "retryAfter",
		after.Round(time.Millisecond).String(),
	)
	// The message omits the delay, so that the API server merges repeated events.
	r.emit(ctx, t, "HandlerFailed", "%s failed, it will be tried again: %v", t.action, err)
	return outcome{again: again, result: result, err: waiting{err}}
}

// again returns the same turn as a pending call.
func (r *WithEdge[T]) again(t turn[T], c *call, due time.Time, err error) *pending {
	return &pending{action: t.action, object: t.snapshot, attempt: t.attempt + 1, due: due, state: c.state, err: err}
}

func (r *WithEdge[T]) emit(ctx context.Context, t turn[T], reason, format string, args ...any) {
	if config, err := reconcilers.RetrieveOriginalConfig(ctx); err == nil {
		config.RecordEvent(t.resource, corev1.EventTypeWarning, reason, format, args...)
	}
}

// rateLimited returns the delay of controller-runtime's default rate limiter after this number of failures.
func rateLimited(failures int) time.Duration {
	const first, last = 5 * time.Millisecond, 1000 * time.Second
	return min(first<<min(failures, 20), last)
}

// stopping returns an error caused by the controller stopping.
func stopping(err error) error {
	return errors.Join(reconcilers.ErrQuiet, err)
}

// isTerminal reports whether retrying cannot resolve an error.
func isTerminal(err error) bool {
	var mismatch *CannotCastError
	return errors.Is(err, reconcile.TerminalError(nil)) || errors.As(err, &mismatch)
}

// waiting stops the reconcilers that follow. The next attempt is already scheduled, or waits for a change. The failure
// is already logged, and the rate limiter must not apply.
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
