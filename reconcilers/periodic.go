// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	rtime "trueup.dev/time"
)

var _ subReconciler = (*Periodic[client.Object])(nil)

// Periodic runs a sub reconciler once per interval, for example to detect drift in an external system. Between two
// runs it does nothing and lets the reconcilers that follow run.
//
// The scheduled times of a resource are one interval apart. They follow from its UID alone: many resources spread
// evenly over the interval, do not drift together, and keep their times after a restart. The sub reconciler also runs
// at once in these cases: the resource is new to this process, see LastRun; the resource has a new generation, which
// not all kinds have; it is being deleted; [AnnotationReconcileAt] changed; the last run failed, halted or returned a
// RequeueAfter that has passed; the status after the last run was not stored. The next scheduled run is then at least
// half an interval later.
//
// In a step of [Steps], the sub reconciler runs in each reconcile until the step waits for nothing that it manages.
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

	// Reconciler is the sub reconciler to run. Required.
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
