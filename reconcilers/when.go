// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	rtime "trueup.dev/time"
)

var _ subReconciler = (*Timeout[client.Object])(nil)

// Timeout runs a subreconciler with a deadline on its context. If the subreconciler fails after the deadline, the
// error is an [ErrTimeout], and the controller retries the request with back-off. A subreconciler that ignores its
// context is not interrupted, and one that succeeds after the deadline has succeeded.
//
// The root writes the status afterwards without the deadline.
type Timeout[Type client.Object] struct {
	// Name identifies this reconciler in logs and in the error. Defaults to `Timeout`.
	Name string

	// After is the time that Reconciler may take. Required.
	After time.Duration

	// Reconciler is the subreconciler to run. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
}

// ErrTimeout is the error of a [Timeout]. [errors.Is] matches it with [context.DeadlineExceeded] and with the error of
// the nested reconciler.
type ErrTimeout struct {
	// Step is the name of the Timeout.
	Step string
	// After is the time that the nested reconciler was allowed to take.
	After time.Duration
	// Err is the error of the nested reconciler, or nil before it has returned.
	Err error
}

func (err *ErrTimeout) Error() string {
	text := fmt.Sprintf("%s did not finish within %s", err.Step, err.After)
	if err.Err == nil {
		return text
	}
	return text + ": " + err.Err.Error()
}

// Unwrap returns [context.DeadlineExceeded] and the error of the nested reconciler.
func (err *ErrTimeout) Unwrap() []error {
	return append([]error{context.DeadlineExceeded}, nonNil(err.Err)...)
}

func (r *Timeout[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "Timeout"
		}
	})
}

// SetupWithManager validates the reconciler and sets up Reconciler.
func (r *Timeout[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *Timeout[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *Timeout[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *Timeout[T]) describe(d *description) {
	r.init()
	d.is("Timeout", r.Name)
	d.require(r.After > 0, "must define a positive After, got %s", r.After)
	d.require(given(r.Reconciler), "must implement Reconciler")
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler})
}

// Reconcile runs Reconciler with the deadline.
func (r *Timeout[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *Timeout[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	exceeded := &ErrTimeout{Step: r.Name, After: r.After}
	limited, cancel := context.WithTimeoutCause(ctx, r.After, exceeded)
	defer cancel()
	result, err := r.Reconciler.Reconcile(limited, resource)
	if err == nil || isQuiet(err) || context.Cause(limited) != error(exceeded) { //nolint:errorlint // this deadline only
		return result, err
	}
	if errors.Is(err, exceeded) {
		return result, err
	}
	return result, &ErrTimeout{Step: r.Name, After: r.After, Err: err}
}

var _ subReconciler = (*RateLimit[client.Object])(nil)

// RateLimit limits how often a subreconciler runs, for example because it calls an API with a quota. A run over the
// limit is not dropped: the resource reserves the next free time, and the request runs again then, with a RequeueAfter
// that occupies no worker. Until then, the reconcilers that follow do not run, see Continue.
//
// A change of [AnnotationReconcileAt] makes the subreconciler run at once. This run does not count. The limit applies
// to one process, and is not kept over a restart.
//
// In a step of [Steps], a run that is deferred makes the step wait, unless the last run for this generation of the
// resource left nothing to wait for.
//
// While the resource is being deleted, a deferred run always stops the reconcilers that follow, and keeps the finalizer
// of an enclosing [WithFinalizer].
type RateLimit[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `RateLimit`.
	Name string

	// Runs is the number of runs that start within Interval at most. Defaults to 1.
	Runs int

	// Interval is the time that Runs refers to. Required.
	Interval time.Duration

	// PerResource applies the limit to each resource separately, and to each item of a [ForEach]. Defaults to false: the
	// limit applies to all resources together.
	PerResource bool

	// Continue lets the reconcilers that follow run while Reconciler is deferred. Defaults to false.
	Continue bool

	// Reconciler is the subreconciler to limit. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
	mu       sync.Mutex
	// all has the runs of all resources. It is not used with PerResource.
	all   runTimes
	known perItem[*limited]
	// settled has the occasion of the last run after which the enclosing step of Steps waited for nothing.
	settled perItem[occasion]
}

// limited is the state of a resource. RateLimit.mu protects it.
type limited struct {
	runTimes
	// reserved is the time that the resource has reserved, or zero.
	reserved    time.Time
	requestedAt string
}

// runTimes are the times of the last runs, the oldest at next.
type runTimes struct {
	times []time.Time
	next  int
}

// reserve returns the first time, now or later, at which another run may start, and records the run.
func (r *runTimes) reserve(now time.Time, runs int, interval time.Duration) time.Time {
	at := now
	if len(r.times) < runs {
		r.times = append(r.times, at)
		return at
	}
	if free := r.times[r.next].Add(interval); free.After(at) {
		at = free
	}
	r.times[r.next] = at
	r.next = (r.next + 1) % runs
	return at
}

func (r *RateLimit[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "RateLimit"
		}
		if r.Runs == 0 {
			r.Runs = 1
		}
	})
}

// SetupWithManager validates the reconciler and sets up Reconciler.
func (r *RateLimit[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the fields. If ctx requests recursion, it also validates Reconciler.
func (r *RateLimit[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *RateLimit[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *RateLimit[T]) describe(d *description) {
	r.init()
	d.is("RateLimit", r.Name)
	d.require(r.Runs >= 0, "must define a positive Runs, got %d", r.Runs)
	d.require(r.Interval > 0, "must define a positive Interval, got %s", r.Interval)
	d.require(given(r.Reconciler), "must implement Reconciler")
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler})
}

// Reconcile runs Reconciler unless it is deferred.
func (r *RateLimit[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *RateLimit[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	now := rtime.RetrieveNow(ctx)
	wait := r.wait(ctx, resource, now)
	if wait <= 0 {
		return r.run(ctx, resource, now)
	}
	result := Result{RequeueAfter: wait}
	why := fmt.Sprintf("deferred by %s, at most %d runs start within %s", r.Name, r.Runs, r.Interval)
	if r.Continue && !MustRemove(ctx, resource) {
		if last, ok := r.settled.get(ctx, resource); ok && last == occasionOf(ctx, resource) {
			why = ""
		}
		unfinished(ctx, why)
		return result, nil
	}
	text := fmt.Sprintf("deferred by %s for %s, at most %d runs start within %s",
		r.Name, wait.Round(time.Millisecond), r.Runs, r.Interval)
	return result, &deferredStep{text: text, why: why}
}

// run runs Reconciler and notes whether the enclosing step of [Steps] waits for it.
func (r *RateLimit[T]) run(ctx context.Context, resource T, now time.Time) (Result, error) {
	step := stepRunFrom(ctx)
	before := step.notes()
	result, err := r.Reconciler.Reconcile(ctx, resource)
	switch {
	case step == nil:
	case err == nil && step.notes() == before:
		r.settled.put(ctx, resource, occasionOf(ctx, resource), now, now.Add(stateTTL+r.Interval))
	default:
		r.settled.forget(ctx, resource)
	}
	return result, err
}

// wait returns how long a resource must wait. If the result is 0, the resource runs now.
func (r *RateLimit[T]) wait(ctx context.Context, resource T, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	requestedAt := resource.GetAnnotations()[AnnotationReconcileAt]
	state, ok := r.known.get(ctx, resource)
	if !ok {
		state = &limited{requestedAt: requestedAt}
	}
	switch {
	case state.requestedAt != requestedAt:
		state.requestedAt, state.reserved = requestedAt, time.Time{}
	case !state.reserved.IsZero() && !now.Before(state.reserved):
		state.reserved = time.Time{} // the time was recorded when it was reserved
	case state.reserved.IsZero():
		runs := &r.all
		if r.PerResource {
			runs = &state.runTimes
		}
		if at := runs.reserve(now, r.Runs, r.Interval); at.After(now) {
			state.reserved = at
		}
	}
	until := now
	if state.reserved.After(now) {
		until = state.reserved
	}
	r.known.put(ctx, resource, state, now, until.Add(stateTTL+r.Interval))
	return until.Sub(now)
}

var _ subReconciler = (*Periodic[client.Object])(nil)

// Periodic runs a subreconciler once per interval, for example to detect drift in an external system. Between two
// runs it does nothing and lets the reconcilers that follow run.
//
// The scheduled times of a resource are one interval apart. They follow from its UID alone: many resources spread
// evenly over the interval, do not drift together, and keep their times after a restart. The subreconciler also runs
// at once in these cases: the resource is new to this process, see LastRun; the resource has a new generation, which
// not all kinds have; it is being deleted; [AnnotationReconcileAt] changed; the last run failed, halted or returned a
// RequeueAfter that has passed; the status after the last run was not stored. The next scheduled run is then at least
// half an interval later.
//
// In a step of [Steps], the subreconciler runs in each reconcile until the step waits for nothing that it manages.
// Between two later runs, the step is as ready as after the last one.
//
// The time of the last run is kept in memory, and dropped a day and an interval after the last reconcile of the
// resource.
type Periodic[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `Periodic`.
	Name string

	// Interval is the time between two scheduled runs. Required.
	Interval time.Duration

	// LastRun returns the time of the last successful run, which Reconciler recorded in the status, or the zero time.
	// With it, a restart of the controller does not run Reconciler for all resources at once. It is called for resources
	// that are new to the process, but not in a step of [Steps], which must know what is ready. A new generation or a
	// change of [AnnotationReconcileAt] that happened while the controller was not running is recognized only if LastRun
	// returns the zero time for it, or if the value of the annotation is a later time in RFC 3339. Defaults to a function
	// that returns the zero time.
	LastRun func(ctx context.Context, resource Type) time.Time

	// Reconciler is the subreconciler to run. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
	runs     perItem[periodicRun]
}

// periodicRun is the last successful run of a resource.
type periodicRun struct {
	occasion
	// due is the time of the next run.
	due time.Time
}

func (r *Periodic[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "Periodic"
		}
		if r.LastRun == nil {
			r.LastRun = func(context.Context, T) time.Time { return time.Time{} }
		}
	})
}

// SetupWithManager validates the reconciler and sets up Reconciler.
func (r *Periodic[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *Periodic[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *Periodic[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *Periodic[T]) describe(d *description) {
	r.init()
	d.is("Periodic", r.Name)
	d.require(r.Interval > 0, "must define a positive Interval, got %s", r.Interval)
	d.require(given(r.Reconciler), "must implement Reconciler")
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler})
}

// Reconcile runs Reconciler if it is due.
func (r *Periodic[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *Periodic[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	now, current := rtime.RetrieveNow(ctx), occasionOf(ctx, resource)
	if current.deleting {
		r.runs.forget(ctx, resource)
		return r.Reconciler.Reconcile(ctx, resource)
	}
	last, ok := r.runs.get(ctx, resource)
	run := stepRunFrom(ctx)
	if !ok && run == nil { // a step of Steps must know whether its children are ready
		last, ok = r.recorded(ctx, resource)
	}
	if ok && last.occasion == current && now.Before(last.due) {
		r.keep(ctx, resource, last, now)
		unfinished(ctx, "")
		return Result{RequeueAfter: last.due.Sub(now)}, nil
	}
	before := run.notes()
	result, err := r.Reconciler.Reconcile(ctx, resource)
	if err != nil {
		r.runs.forget(ctx, resource)
		return result, err
	}
	next := scheduledAfter(itemIDOf(ctx, resource), now, r.Interval).Sub(now)
	result = AggregateResults(result, Result{RequeueAfter: next})
	// What Reconciler wrote to the status in memory is lost if the status is not stored: then it must run again.
	r.runs.forget(ctx, resource)
	if run.notes() != before {
		return result, nil // the step of Steps waits for what Reconciler manages
	}
	whenStored(ctx, func() {
		r.keep(ctx, resource, periodicRun{occasion: current, due: now.Add(result.RequeueAfter)}, now)
	})
	return result, nil
}

// keep stores the last run as long as it may be needed.
func (r *Periodic[T]) keep(ctx context.Context, resource T, run periodicRun, now time.Time) {
	r.runs.put(ctx, resource, run, now, now.Add(stateTTL+r.Interval))
}

// recorded returns the last run before this process, as the status has it.
func (r *Periodic[T]) recorded(ctx context.Context, resource T) (periodicRun, bool) {
	last := r.LastRun(ctx, resource)
	if last.IsZero() {
		return periodicRun{}, false
	}
	current := occasionOf(ctx, resource)
	if requested, err := time.Parse(time.RFC3339, current.requestedAt); err == nil && requested.After(last) {
		return periodicRun{}, false
	}
	return periodicRun{occasion: current, due: scheduledAfter(itemIDOf(ctx, resource), last, r.Interval)}, true
}

// scheduledAfter returns the first scheduled time of a resource that is more than half an interval after last. A run
// that is late by less than that does not move the schedule.
func scheduledAfter(id objectID, last time.Time, interval time.Duration) time.Time {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(id.uid))
	_, _ = hash.Write([]byte(id.String()))
	_, _ = hash.Write([]byte(id.item))
	phase := time.Duration(hash.Sum64() % uint64(interval)) //nolint:gosec // it is less than interval
	from := last.Add(interval / 2)
	since := time.Duration(from.UnixNano()) - phase
	passed := since % interval
	if passed < 0 {
		passed += interval
	}
	return from.Add(interval - passed)
}

var _ subReconciler = (*Paused[client.Object])(nil)

// AnnotationPaused is the annotation that pauses a resource, see [Paused]. The value is "true" or the reason in words.
// The values "false" and "" do not pause.
//
//	kubectl annotate website blog trueup.dev/paused="migration until Friday"
const AnnotationPaused = "trueup.dev/paused"

// Paused does not run a subreconciler while the resource has the annotation [AnnotationPaused], or while PausedBy
// returns a reason. The reconcilers that follow do not run either, so it is usually the outermost reconciler, directly
// below the root. A paused resource is not written, unless Condition is set, and not requeued. It resumes when the
// annotation is removed. A controller with a predicate on generations does not receive that change: combine the
// predicate with controller-runtime's AnnotationChangedPredicate.
//
// Paused also stops the deletion, as in Cluster API: the finalizers of reconcilers below and of an enclosing
// [WithFinalizer] are kept, and nothing is cleaned up, until the resource resumes. A resource without finalizers is
// deleted by the API server nevertheless.
type Paused[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `Paused`.
	Name string

	// Setup registers watches that PausedBy needs. It is called before Reconciler is set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// PausedBy returns a reason to pause the resource, or "", for example because the cluster that it belongs to is
	// paused. It is not called if the annotation pauses the resource. Optional.
	PausedBy func(ctx context.Context, resource Type) (reason string, err error)

	// Condition is the type of a condition that is True while the resource is paused, and removed afterwards. It needs a
	// status with a field Conditions of type []metav1.Condition. Defaults to "", which means no condition and no write.
	Condition string

	// Reconciler runs while the resource is not paused. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
	// logged has the last reason that was logged.
	logged perItem[string]
	status statusTypes
}

// pausedResource is the error of a paused resource. It is retried when the resource changes.
type pausedResource struct{ reason string }

func (e *pausedResource) Error() string   { return "paused: " + e.reason }
func (e *pausedResource) Unwrap() []error { return []error{ErrRetryAfter} }

func (r *Paused[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "Paused"
		}
	})
}

// SetupWithManager validates the reconciler, calls Setup and sets up Reconciler.
func (r *Paused[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the fields. If ctx requests recursion, it also validates Reconciler.
func (r *Paused[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *Paused[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *Paused[T]) describe(d *description) {
	r.init()
	d.is("Paused", r.Name)
	d.require(given(r.Reconciler), "must implement Reconciler")
	if resource := newEmpty[T](); r.Condition != "" && given(resource) {
		d.require(r.status.hasConditions(resource),
			"may not define Condition: %s has no field Conditions of type []metav1.Condition in its status", typeName(resource))
	}
	d.check(func(ctx context.Context, problems *problems) {
		declareCondition(ctx, problems, r, d.label, r.Condition)
	})
	d.setsUp(r.Setup)
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler})
}

// Reconcile runs Reconciler unless the resource is paused.
func (r *Paused[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *Paused[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	reason, err := r.reason(ctx, resource)
	if err != nil {
		return Result{}, fmt.Errorf("PausedBy: %w", err)
	}
	r.setCondition(resource, reason)
	if reason == "" {
		r.logged.forget(ctx, resource)
		return r.Reconciler.Reconcile(ctx, resource)
	}
	if last, _ := r.logged.get(ctx, resource); last != reason {
		logr.FromContextOrDiscard(ctx).Info("paused", "reason", reason)
	}
	now := rtime.RetrieveNow(ctx)
	r.logged.put(ctx, resource, reason, now, now.Add(stateTTL))
	paused := error(&pausedResource{reason: reason})
	if r.Condition == "" {
		paused = errors.Join(paused, ErrSkipStatusUpdate)
	}
	return Result{}, paused
}

// reason returns why the resource is paused, or "".
func (r *Paused[T]) reason(ctx context.Context, resource T) (string, error) {
	switch value := resource.GetAnnotations()[AnnotationPaused]; {
	case value == "true":
		return "annotation " + AnnotationPaused, nil
	case value != "" && value != "false":
		return value, nil
	case r.PausedBy != nil:
		return r.PausedBy(ctx, resource)
	}
	return "", nil
}

// setCondition sets the condition if there is a reason, and otherwise removes it.
func (r *Paused[T]) setCondition(resource T, reason string) {
	if r.Condition == "" {
		return
	}
	r.status.of(resource).changeConditions(resource, func(conditions *[]metav1.Condition) {
		switch {
		case reason != "":
			meta.SetStatusCondition(conditions, metav1.Condition{
				Type: r.Condition, Status: metav1.ConditionTrue, Reason: "Paused", Message: reason,
			})
		case meta.FindStatusCondition(*conditions, r.Condition) != nil:
			meta.RemoveStatusCondition(conditions, r.Condition)
		}
	})
}

// AnnotationReconcileAt is the annotation that requests a reconcile of a resource. Any change of its value makes the
// next reconcile run everything that [Retry], [RateLimit] or [Periodic] would defer. The value is usually the current
// time:
//
//	kubectl annotate --overwrite website blog trueup.dev/reconcile-at="$(date --rfc-3339=ns)"
//
// The value is remembered in memory, so handling it writes nothing. A controller with a predicate on generations does
// not receive the change: combine the predicate with controller-runtime's AnnotationChangedPredicate.
const AnnotationReconcileAt = "trueup.dev/reconcile-at"

// occasion is what entitles a step to run at once, without regard to what was deferred: a new generation, the start of
// the deletion or of the removal of a step of [Steps], or a request by annotation.
type occasion struct {
	generation  int64
	deleting    bool
	requestedAt string
}

func occasionOf(ctx context.Context, resource client.Object) occasion {
	return occasion{
		generation: resource.GetGeneration(), deleting: MustRemove(ctx, resource),
		requestedAt: resource.GetAnnotations()[AnnotationReconcileAt],
	}
}

// deferredStep is the error of a step that is deferred. The step that follows must not run, unless the user asks.
type deferredStep struct {
	text string
	// why is a text for conditions: it does not change with the time.
	why   string
	cause error
}

func (e *deferredStep) Error() string   { return e.text }
func (e *deferredStep) Unwrap() []error { return append([]error{ErrRetryAfter}, nonNil(e.cause)...) }

func nonNil(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// stateTTL is how long the state of a step is kept after the last reconcile of its resource. It is longer than the
// default sync period, which reconciles each resource that exists.
const stateTTL = 24 * time.Hour
