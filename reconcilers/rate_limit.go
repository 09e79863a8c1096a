// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	rtime "trueup.dev/time"
)

var _ subReconciler = (*RateLimit[client.Object])(nil)

// RateLimit limits how often a sub reconciler runs, for example because it calls an API with a quota. A run over the
// limit is not dropped: the resource reserves the next free time, and the request runs again then, with a RequeueAfter
// that occupies no worker. Until then, the reconcilers that follow do not run, see Continue.
//
// A change of [AnnotationReconcileAt] makes the sub reconciler run at once. This run does not count. The limit applies
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

	// Reconciler is the sub reconciler to limit. Required.
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
