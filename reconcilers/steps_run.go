// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/step"
	"trueup.dev/readiness"
	rtime "trueup.dev/time"
)

// stepState is the state of a step in one request.
type stepState struct {
	// removes reports whether the step is removed.
	removes bool
	// done reports whether the step is ready or, if it is removed, whether it has no children.
	done bool
	// waits says what the step waits for. It is empty if the step is done or has not run.
	waits string
	// cause is the text of the error of the step, or "".
	cause string
	// polls reports whether the step halted, and neither an event nor a requeue makes it run again.
	polls bool
	// waitsFor is the name of a step that the step waits for, if it has not run.
	waitsFor string
	// failed reports whether a child has failed.
	failed bool
	// since is the time of the last change of waits. exceeded reports whether the deadline has passed, and
	// exceededBefore whether the condition already says so. stuck reports whether it is that of a removal.
	since                           time.Time
	exceeded, exceededBefore, stuck bool
}

// stepsRequest is one request to [Steps].
type stepsRequest[T client.Object] struct {
	*Steps[T]
	resource T
	now      time.Time
	// removesAll reports whether all steps are removed.
	removesAll bool
	states     []stepState
	result     Result
	errs       []error
	// confirmed has the names of the removed steps whose children are confirmed to be gone.
	confirmed []string
}

// removalPending is the error of a resource that is being deleted while steps have children. The event of a child
// triggers the next request.
type removalPending struct{ text string }

func (e *removalPending) Error() string   { return "removing steps: " + e.text }
func (e *removalPending) Unwrap() []error { return []error{ErrRetryAfter} }

func (r *Steps[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	removesAll := MustRemove(ctx, resource)
	if !removesAll {
		if err := AddFinalizer(ctx, resource, r.Finalizer); err != nil {
			return Result{}, err
		}
	}
	req := &stepsRequest[T]{
		Steps: r, resource: resource, now: rtime.RetrieveNow(ctx), removesAll: removesAll,
		states: make([]stepState, len(r.Steps)),
	}
	req.confirmed, _ = r.confirmed.get(ctx, resource)
	for i, s := range r.Steps {
		req.states[i].removes = removesAll || s.Wanted != nil && !s.Wanted(ctx, resource)
	}
	req.runAll(ctx)
	if slices.ContainsFunc(req.states, func(s stepState) bool { return !s.done }) {
		unfinished(ctx, "") // Prune must not delete the children of a step that did not run or is removed later
	}
	if slices.ContainsFunc(req.states, func(s stepState) bool { return s.waitsFor != "" }) {
		waitsFrom(ctx).leaveOut()
	}
	req.keepConfirmed(ctx)
	req.setConditions(ctx)
	if removesAll {
		req.finish(ctx)
	}
	req.requeueAtDeadline(ctx)
	req.requeueHalted()
	return req.result, joinErrors(req.errs...)
}

// runAll runs the wanted steps in order, and removes the other steps in the reverse order.
func (r *stepsRequest[T]) runAll(ctx context.Context) {
	for _, i := range r.order {
		if !r.states[i].removes && !r.stopped(ctx) {
			r.run(ctx, i)
		}
	}
	for _, i := range slices.Backward(r.order) {
		if r.states[i].removes && !r.stopped(ctx) {
			r.remove(ctx, i)
		}
	}
}

// stopped reports whether the context has ended.
func (r *stepsRequest[T]) stopped(ctx context.Context) bool {
	err := interrupted(ctx)
	if err != nil && !slices.ContainsFunc(r.errs, func(e error) bool { return errors.Is(e, context.Cause(ctx)) }) {
		r.errs = append(r.errs, err)
	}
	return err != nil
}

// run runs a wanted step if the steps that it depends on are ready.
func (r *stepsRequest[T]) run(ctx context.Context, i int) {
	state := &r.states[i]
	if d := r.blocker(i); d >= 0 {
		state.waitsFor = r.Steps.Steps[d].Name
		return
	}
	r.call(ctx, i, &stepRun{})
}

// blocker returns a step that is not ready and that step i depends on, or -1. A step that is not wanted is replaced by
// the steps that it depends on.
func (r *stepsRequest[T]) blocker(i int) int {
	for _, d := range r.dependsOn[i] {
		switch state := r.states[d]; {
		case !state.removes && !state.done:
			return d
		case state.removes:
			if b := r.blocker(d); b >= 0 {
				return b
			}
		}
	}
	return -1
}

// remove removes a step if the steps that depend on it have no children left, or are ready without it.
func (r *stepsRequest[T]) remove(ctx context.Context, i int) {
	name := r.Steps.Steps[i].Name
	for _, n := range r.neededBy[i] {
		if !r.states[n].done {
			r.states[i].waitsFor = r.Steps.Steps[n].Name
			return
		}
	}
	// Steps that this step depends on are removed next. That cannot be undone.
	removesNext := slices.ContainsFunc(r.dependsOn[i], func(d int) bool { return r.states[d].removes })
	live := removesNext && !slices.Contains(r.confirmed, name)
	r.call(ctx, i, &stepRun{removes: true, live: live})
	switch {
	case !r.states[i].done:
		r.confirmed = slices.DeleteFunc(slices.Clone(r.confirmed), func(other string) bool { return other == name })
	case live:
		r.confirmed = append(slices.Clip(r.confirmed), name)
	}
}

// call runs the reconciler of a step.
func (r *stepsRequest[T]) call(ctx context.Context, i int, run *stepRun) {
	s, state := r.Steps.Steps[i], &r.states[i]
	run.outside, run.rule, run.hasCondition = stepRunFrom(ctx), s.Ready, r.Condition != ""
	run.live = run.live || run.outside.confirms()
	if run.rule == nil {
		run.rule = readiness.Default
	}
	waits := waitsFrom(ctx)
	before := waits.begin()
	result, err := step.Run(run.onto(ctx), step.Node{Name: s.Name}, r.resource, s.Reconciler.Reconcile)
	halted := errors.Is(err, ErrHaltSubReconcilers) && !errors.Is(err, ErrSkipStatusUpdate)
	if halted {
		state.polls = result == (Result{Priority: result.Priority}) && !waits.explain(before, err) && !run.watches
		waits.end(before, nil)
	} else {
		waits.end(before, err)
	}
	r.result = AggregateResults(r.result, result)
	if config, err := RetrieveConfig(ctx); err == nil && run.unseen {
		r.result = AggregateResults(r.result, Result{RequeueAfter: config.staleReadsTimeout()})
	}
	state.waits, state.failed = run.text()
	if err != nil {
		waits.leaveOut()
		if !halted {
			r.errs = append(r.errs, err)
		}
		state.cause = causeOf(err)
		if state.waits == "" {
			state.waits = "has not finished"
			run.outside.wait(s.Name+" "+state.waits, false)
		}
	}
	state.done = state.waits == ""
}

// keepConfirmed remembers which steps have no children. A step that is wanted again has children again.
func (r *stepsRequest[T]) keepConfirmed(ctx context.Context) {
	confirmed := slices.DeleteFunc(slices.Clone(r.confirmed), func(name string) bool {
		i := r.indexOf(name)
		return i < 0 || !r.states[i].removes
	})
	if len(confirmed) == 0 {
		r.Steps.confirmed.forget(ctx, r.resource)
		return
	}
	r.Steps.confirmed.put(ctx, r.resource, confirmed, r.now, r.now.Add(stateTTL))
}

// finish clears the finalizer when all steps are removed. Until then it adds an error, so that an enclosing
// WithFinalizer keeps its finalizer.
func (r *stepsRequest[T]) finish(ctx context.Context) {
	waiting := []string{}
	for i, state := range r.states {
		if state.waits != "" {
			waiting = append(waiting, stepText(r.Steps.Steps[i].Name, state.waits))
		}
	}
	switch {
	case len(r.errs) > 0:
	case len(waiting) > 0:
		r.errs = append(r.errs, &removalPending{strings.Join(waiting, "; ")})
	default:
		if err := ClearFinalizer(ctx, r.resource, r.Finalizer); err != nil {
			r.errs = append(r.errs, err)
		}
	}
}

// requeueAtDeadline requests a reconcile at the next deadline of a step.
func (r *stepsRequest[T]) requeueAtDeadline(ctx context.Context) {
	for i, state := range r.states {
		if limit, _ := r.deadline(ctx, i); limit > 0 && !state.exceeded {
			r.result = AggregateResults(r.result, Result{RequeueAfter: state.since.Add(limit).Sub(r.now)})
		}
	}
}

// Limits of the time after which a step that halted runs again. It is about as long as the step has waited.
const (
	firstHaltedRetry = time.Second
	lastHaltedRetry  = 5 * time.Minute
)

// requeueHalted requests a reconcile for the steps that halted and that nothing else makes run again.
func (r *stepsRequest[T]) requeueHalted() {
	for _, state := range r.states {
		switch waited := r.now.Sub(state.since); {
		case !state.polls:
		case r.Condition == "" || state.since.IsZero(): // nothing remembers how long the step has waited
			r.result = AggregateResults(r.result, backOff)
		default:
			after := min(max(waited, firstHaltedRetry), lastHaltedRetry)
			r.result = AggregateResults(r.result, Result{RequeueAfter: after})
		}
	}
}

// removalDeadline is the time without progress after which a removal is reported.
const removalDeadline = 5 * time.Minute

// deadline returns the time after which a step that waits has exceeded its deadline, with the reason of the event, or 0
// if no deadline applies. The condition has the time and remembers the event.
func (r *stepsRequest[T]) deadline(ctx context.Context, i int) (limit time.Duration, reason string) {
	state, own := r.states[i], r.Steps.Steps[i].ProgressDeadline
	switch {
	case state.waits == "":
	case own > 0 && !r.removesAll:
		return own, ReasonStepDeadlineExceeded
	case state.removes && r.Condition != "" && (!r.removesAll || stepRunFrom(ctx) == nil):
		return removalDeadline, ReasonRemovalStuck
	}
	return 0, ""
}
