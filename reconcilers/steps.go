// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/apis"
	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/readiness"
	rtime "trueup.dev/time"
)

var _ subReconciler = (*Steps[client.Object])(nil)

// Steps runs subreconcilers in the order of their dependencies. A step runs when all steps that it depends on are
// ready: their subreconcilers returned no error, and each child that a [ChildReconciler] or a [ChildSetReconciler] in
// them manages is ready, see package readiness. A child that was not reconciled is not ready: its reconciler failed,
// although a [TryCatch] or a [Retry] handled the error, or a [RateLimit] or a [Periodic] left it out before it was
// ready. A step that does not run leaves its children unchanged. An update of the resource therefore passes through the
// steps in order.
//
// Steps waits without polling: an event of a child triggers the next reconcile. A condition says what is waited for and
// since when, and the cause if a step failed. The message changes only if the state of a child or the cause changes, so
// waiting writes nothing. "Since" is the time of the last change of what is waited for, so progress restarts
// ProgressDeadline.
//
// A step that halts, see [ErrHaltSubReconcilers], waits for something. If it does not return a RequeueAfter, and if it
// waits neither for a child nor for a missing object that it tracks, it runs again after as long as it has waited, at
// least a second and at most 5 minutes.
//
// While steps wait, Steps returns no error, so the reconcilers that follow in a [Sequence] run. What requires that a
// step is ready must be a step as well. An error of a step that is not a halt is returned after the steps that do not
// depend on it have run.
//
// # Removal
//
// A step that is not wanted, see [Step.Wanted], is removed: its children are deleted, and the Finalize functions below
// it are called in each reconcile. This happens after each step that depends on it has no children left or, if that
// step is wanted, is ready again without it. A step that depends on an unwanted step depends on the dependencies of
// that step instead.
//
// If the resource is being deleted, all steps are removed in the reverse order. A child is gone when a list of the API
// server does not contain it. This requires a finalizer on the resource until no step has a child left: set Finalizer,
// or wrap Steps in [WithFinalizer]. With foreground deletion of the resource, the garbage collector does not wait for
// this order. If Condition is set, a [ResourceReconciler] writes the status also while the resource is being deleted:
// the condition says what the removal waits for. A removal that makes no progress for 5 minutes is recorded as the
// Warning event RemovalStuck, once.
type Steps[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `Steps`.
	Name string

	// Steps are the steps. They run in the order of their dependencies, and otherwise in this order. Required.
	Steps []Step[Type]

	// Finalizer is added to the resource before any step runs and removed when no step has a child left. It must be unique
	// and stable, see [WithFinalizer]. Optional.
	Finalizer string

	// Condition is the type of the condition that is True if all steps are ready. If a step has failed or exceeded its
	// deadline, it is False, and otherwise Unknown. No other reconciler may set it. Defaults to `Ready`. If Conditions is
	// not set, the status needs a field Conditions of type []metav1.Condition. The default then applies only to a status
	// with this field.
	Condition string

	// Conditions returns the manager of the conditions of the resource. It is required if the status has a condition that
	// is derived from others: Condition must then be the type of a dependent. Optional.
	Conditions func(ctx context.Context, resource Type) apis.ConditionManager

	lazyInit sync.Once
	// order has the indexes of Steps in the order of their dependencies. dependsOn and neededBy have the indexes of the
	// steps that a step depends on, and of those that depend on it.
	order               []int
	dependsOn, neededBy [][]int
	status              statusTypes
	// confirmed has the names of the removed steps of a resource whose children are confirmed to be gone.
	confirmed perItem[[]string]
}

// Step is a part of [Steps].
type Step[Type client.Object] struct {
	// Name identifies the step in DependsOn, in logs and in conditions. It must be unique within Steps. Required.
	Name string

	// DependsOn has the names of the steps that must be ready before this step runs. Optional.
	DependsOn []string

	// Reconciler runs when the steps that the step depends on are ready. Required.
	Reconciler SubReconciler[Type]

	// Wanted reports whether the step is part of the desired state. An unwanted step is removed. Defaults to a function
	// that returns true.
	Wanted func(ctx context.Context, resource Type) bool

	// Ready decides whether a child of the step is ready. Defaults to [readiness.Default].
	Ready readiness.Rule

	// ProgressDeadline is the time without a change of what is waited for after which the condition becomes False and a
	// Warning event StepDeadlineExceeded is recorded. The step continues to wait. The condition has the time, so Condition
	// of Steps is required. It does not apply while the resource is being deleted. Defaults to 0, which means no deadline.
	ProgressDeadline time.Duration

	// Condition is the type of a condition of this step alone. It is True if the step is ready, or unwanted and gone.
	// Defaults to "", which means no condition.
	Condition string
}

// Reasons of the conditions of [Steps].
const (
	// ReasonStepsReady means that all steps are ready.
	ReasonStepsReady = "Ready"
	// ReasonWaitingForStep means that a step is not ready yet.
	ReasonWaitingForStep = "WaitingForStep"
	// ReasonRemovingStep means that children of a step are being deleted.
	ReasonRemovingStep = "RemovingStep"
	// ReasonStepFailed means that a child of a step has failed.
	ReasonStepFailed = "StepFailed"
	// ReasonStepDeadlineExceeded means that a step made no progress for longer than its ProgressDeadline.
	ReasonStepDeadlineExceeded = "StepDeadlineExceeded"
	// ReasonRemovalStuck is the reason of the event of a removal that has made no progress for 5 minutes.
	ReasonRemovalStuck = "RemovalStuck"
	// ReasonStepUnwanted means that a step is not wanted and has no children.
	ReasonStepUnwanted = "StepUnwanted"
)

func (r *Steps[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "Steps"
		}
		if resource := newEmpty[T](); r.Condition == "" && (r.Conditions != nil || r.status.hasConditions(resource)) {
			r.Condition = apis.ConditionReady
		}
		r.dependsOn, r.neededBy = make([][]int, len(r.Steps)), make([][]int, len(r.Steps))
		for i, s := range r.Steps {
			for _, name := range s.DependsOn {
				if d := r.indexOf(name); d >= 0 {
					r.dependsOn[i] = append(r.dependsOn[i], d)
					r.neededBy[d] = append(r.neededBy[d], i)
				}
			}
		}
		r.order = r.sorted()
	})
}

func (r *Steps[T]) indexOf(name string) int {
	return slices.IndexFunc(r.Steps, func(s Step[T]) bool { return s.Name == name })
}

// sorted returns the indexes of the steps in the order of their dependencies, without those that are part of a cycle or
// depend on one.
func (r *Steps[T]) sorted() []int {
	order, placed := []int{}, make([]bool, len(r.Steps))
	for {
		next := -1
		for i := range r.Steps {
			if !placed[i] && !slices.ContainsFunc(r.dependsOn[i], func(d int) bool { return !placed[d] }) {
				next = i
				break
			}
		}
		if next < 0 {
			return order
		}
		placed[next] = true
		order = append(order, next)
	}
}

// cycle returns the names of steps that depend on each other, in order, or nil.
func (r *Steps[T]) cycle() []string {
	sorted := func(i int) bool { return slices.Contains(r.order, i) }
	for i := range r.Steps {
		if sorted(i) {
			continue
		}
		// Each step that is not sorted depends on another one that is not sorted. This ends in a cycle.
		way := []int{}
		for at := i; ; {
			if first := slices.Index(way, at); first >= 0 {
				names := []string{}
				for _, step := range append(way[first:], at) {
					names = append(names, r.Steps[step].Name)
				}
				return names
			}
			way = append(way, at)
			at = r.dependsOn[at][slices.IndexFunc(r.dependsOn[at], func(d int) bool { return !sorted(d) })]
		}
	}
	return nil
}

// SetupWithManager validates the reconciler and sets up the steps, in the order of Steps.
func (r *Steps[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the names, the dependencies and the other fields. If ctx requests recursion, it also validates the
// reconcilers and the rules of the steps.
func (r *Steps[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *Steps[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *Steps[T]) describe(d *description) {
	r.init()
	d.is("Steps", r.Name)
	d.accesses(func(n *graph.Node) { n.Finalizer(r.Finalizer) })
	d.require(len(r.Steps) > 0, "must define Steps")
	for i, s := range r.Steps {
		r.describeStep(d, i, s)
	}
	if cycle := r.cycle(); cycle != nil {
		d.require(false, "must not define DependsOn in a cycle: %s", strings.Join(cycle, " → "))
	}
	d.check(func(ctx context.Context, problems *problems) {
		r.validateConditions(ctx, problems)
		if r.Finalizer != "" {
			problems.requests(ctx, d.label, true)
		}
		declareFinalizer(ctx, problems, r, d.label, r.Finalizer)
	})
}

// describeStep describes a step, with the problems of its fields.
func (r *Steps[T]) describeStep(d *description, i int, s Step[T]) {
	at := fmt.Sprintf("Steps[%d]", i)
	switch {
	case s.Name == "":
		d.require(false, "must define the Name of %s", at)
	case r.indexOf(s.Name) < i:
		d.require(false, "must define unique names: several steps have the name %q", s.Name)
	}
	if s.Name != "" {
		at = fmt.Sprintf("step %q", s.Name)
	}
	for n, name := range s.DependsOn {
		switch {
		case r.indexOf(name) < 0:
			d.require(false, "must define all steps: %s depends on %q, which is not defined", at, name)
		case slices.Contains(s.DependsOn[:n], name):
			d.require(false, "must define each dependency once: %s depends on %q several times", at, name)
		}
	}
	d.require(s.ProgressDeadline <= 0 || r.Condition != "", "must define Condition and Conditions to use the "+
		"ProgressDeadline of %s: the condition has the time of the last progress", at)
	d.require(given(s.Reconciler), "must implement the Reconciler of %s", at)
	d.require(s.ProgressDeadline >= 0, "must not define a negative ProgressDeadline of %s, got %s", at, s.ProgressDeadline)
	d.nests(nested{
		role: s.Name, field: "Reconciler of " + at, step: true, reconciler: s.Reconciler, setUpIn: logNamed(s.Name),
	})
	d.check(func(ctx context.Context, problems *problems) {
		problems.nested(ctx, s.Ready, "%s must have a valid Ready of %s", d.label, at)
	})
}

// validateConditions adds a problem if the resource cannot have the conditions, if two of them have the same type, or
// if something else sets one of them.
func (r *Steps[T]) validateConditions(ctx context.Context, problems *problems) {
	types := []string{}
	add := func(conditionType string) {
		if conditionType != "" && slices.Contains(types, conditionType) {
			problems.add("Steps %q must define unique conditions, got %q several times", r.Name, conditionType)
		}
		if conditionType != "" {
			types = append(types, conditionType)
		}
	}
	add(r.Condition)
	for _, s := range r.Steps {
		add(s.Condition)
	}
	for _, conditionType := range types {
		declareCondition(ctx, problems, r, fmt.Sprintf("Steps %q", r.Name), conditionType)
	}
	resource := newEmpty[T]()
	if nilcheck.IsNilPointer(resource) {
		return
	}
	if len(types) > 0 && r.Conditions == nil && !r.status.hasConditions(resource) {
		problems.add(
			"Steps %q may not define Condition without Conditions: "+
				"%s has no field Conditions of type []metav1.Condition in its status", r.Name, typeName(resource),
		)
	}
	happy, dependents := r.status.of(resource).derivedCondition(ctx, resource)
	switch {
	case happy == "":
	case slices.Contains(types, happy):
		problems.add("Steps %q must define Conditions, and as Condition one of %s: %s is derived from them",
			r.Name, strings.Join(dependents, ", "), happy)
	case r.Conditions == nil && slices.ContainsFunc(types, func(t string) bool { return slices.Contains(dependents, t) }):
		problems.add("Steps %q must define Conditions: %s is derived from %s", r.Name, happy, strings.Join(dependents, ", "))
	}
}

// Reconcile runs the steps whose dependencies are ready, removes those that are not wanted, and sets the conditions.
func (r *Steps[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

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
	// since is the time of the last change of waits. exceeded reports whether the deadline has passed, and exceededBefore
	// whether the condition already says so. stuck reports whether it is the deadline of a removal.
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
