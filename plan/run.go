// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/text/panics"
)

// Plan returns what reconciles of the requests would change, one after the other, with the reconciles that their writes
// trigger. The error reports that the plan could not be made, for example because ctx is done. Errors of reconcilers
// are part of the plan.
func (p *Planner) Plan(ctx context.Context, requests ...Request) (*Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
	return p.lane.plan(ctx, requests...)
}

// plan makes a plan of requests.
func (l *lane) plan(ctx context.Context, requests ...Request) (*Plan, error) {
	if l.broken != nil {
		return nil, fmt.Errorf("plan: %w", l.broken)
	}
	if err := l.add(requests...); err != nil {
		return nil, err
	}
	r := &run{lane: l, overlay: l.begin(), count: map[Request]int{}, failed: map[Request]failure{}}
	r.later = map[Request]time.Duration{}
	r.plan.Requests = slices.Clone(requests)
	l.manager.events.take()
	l.announced = nil
	ctx = reconcileContext{log.IntoContext(l.context(ctx), logr.New(log.NullLogSink{})), calledby.Controller()}
	for r.next(ctx) {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("plan: %w", context.Cause(ctx))
		}
	}
	if err := cmp.Or(l.broken, r.err); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return r.result()
}

// run makes one plan.
type run struct {
	lane    *lane
	overlay *overlay
	plan    Plan
	count   map[Request]int
	failed  map[Request]failure
	order   []Request // of failed
	later   map[Request]time.Duration
	err     error
}

// failure is a reconcile that has returned an error, or has requested another reconcile without a write.
type failure struct {
	err error // nil for a request
	// from is the version of the overlay when the reconcile began.
	from int64
}

// next performs the next step, and reports whether there was one.
func (r *run) next(ctx context.Context) bool {
	if r.err != nil || r.lane.broken != nil {
		return false
	}
	for _, q := range r.lane.manager.queues {
		request, ok := q.take()
		if !ok {
			continue
		}
		r.reconcile(ctx, q, request)
		return true
	}
	if collected, err := r.overlay.collect(ctx, r.lane.dependents); err != nil || collected {
		r.err = err
		return true
	}
	if r.lane.options.AssumeReady {
		if changed, err := r.overlay.assume(ctx); err != nil || changed {
			r.err = err
			return true
		}
	}
	return r.retry()
}

// retry adds failed requests again if something has been written since they began.
func (r *run) retry() (added bool) {
	for _, request := range r.order {
		f, ok := r.failed[request]
		if !ok || f.from == r.overlay.version() || errors.Is(f.err, reconcile.TerminalError(nil)) ||
			errors.Is(f.err, errTimeout) ||
			r.count[request] >= r.lane.options.MaxReconciles {
			continue
		}
		if q, err := r.lane.queueOf(request); err == nil {
			q.Add(request.reconcile())
			added = true
		}
	}
	return added
}

func (r *run) reconcile(ctx context.Context, q *queue, of reconcile.Request) {
	request := newRequest(q.name, of)
	if r.count[request] == r.lane.options.MaxReconciles {
		r.plan.note(fmt.Sprintf(
			"what happens after %d reconciles of %v: its writes trigger it again and again", r.count[request], request,
		))
		return
	}
	r.count[request]++
	r.plan.Reconciles++
	from := r.overlay.version()
	returned, result, err := r.limited(ctx, q.reconciler, of)
	if !returned {
		r.lane.broken = fmt.Errorf(
			"the reconciler of %v has not returned %v after its time limit of %v: it ignores its context",
			request, grace, r.lane.options.Timeout,
		)
		return
	}
	delete(r.failed, request)
	delete(r.later, request)
	r.order = slices.DeleteFunc(r.order, func(other Request) bool { return other == request })
	switch {
	case err != nil:
		r.failed[request] = failure{err, from}
		r.order = append(r.order, request)
	case result.IsZero():
	case from != r.overlay.version(): // what it has written may be what it waits for
		q.Add(of)
	case result.RequeueAfter == 0: // Requeue, which reconcilers may still set: nothing has changed since
		r.failed[request] = failure{nil, from}
		r.order = append(r.order, request)
	}
	if result.RequeueAfter > 0 {
		r.later[request] = result.RequeueAfter
	}
}

const (
	defaultTimeout = time.Minute
	// grace is the time that a reconciler has to return after its context has ended.
	grace = 5 * time.Second
)

var errTimeout = errors.New("the time limit of a reconcile")

// limited reconciles a request within the time limit, and reports whether the reconciler has returned.
func (r *run) limited(
	ctx context.Context, reconciler reconcile.Reconciler, request reconcile.Request,
) (returned bool, result reconcile.Result, err error) {
	timeout := r.lane.options.Timeout
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	type answer struct {
		result reconcile.Result
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		result, err := recovered(limited, reconciler, request)
		answered <- answer{result, err}
	}()
	end := time.NewTimer(timeout + grace)
	defer end.Stop()
	select {
	case a := <-answered:
		if a.err != nil && context.Cause(limited) == errTimeout { //nolint:errorlint // it is never wrapped
			a.err = fmt.Errorf("%w, %v, has passed: %w", errTimeout, timeout, a.err)
		}
		return true, a.result, a.err
	case <-end.C:
		return false, reconcile.Result{}, nil
	}
}

// recovered reconciles a request. A panic is an error.
func recovered(
	ctx context.Context, reconciler reconcile.Reconciler, request reconcile.Request,
) (result reconcile.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("panic: " + panics.Text(p))
		}
	}()
	return reconciler.Reconcile(ctx, request)
}

func (r *run) result() (*Plan, error) {
	for _, request := range r.order {
		if err := r.failed[request].err; err != nil {
			r.plan.Errors = append(r.plan.Errors, Failure{Request: request, Error: err.Error()})
		} else {
			r.plan.note(fmt.Sprintf("what happens after %v, which requests another reconcile without a write", request))
		}
	}
	var err error
	if r.plan.Changes, err = r.overlay.changes(r.lane.options.Mask); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	for _, unknown := range r.overlay.unknown {
		r.plan.note(unknown)
	}
	r.plan.Events = r.lane.manager.events.take()
	for _, after := range r.later {
		if r.plan.RequeueAfter == 0 || after < r.plan.RequeueAfter {
			r.plan.RequeueAfter = after
		}
	}
	r.lane.announcing.Lock()
	defer r.lane.announcing.Unlock()
	r.plan.External = r.lane.announced
	return &r.plan, nil
}

// reconcileContext has the values with which a controller calls a reconciler.
type reconcileContext struct {
	context.Context //nolint:containedctx // it is one

	controller context.Context //nolint:containedctx // as above
}

// Value implements [context.Context].
func (c reconcileContext) Value(key any) any {
	if value := c.Context.Value(key); value != nil {
		return value
	}
	return c.controller.Value(key)
}

func (p *Plan) note(unknown string) {
	if !slices.Contains(p.Unknown, unknown) {
		p.Unknown = append(p.Unknown, unknown)
	}
}
