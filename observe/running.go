// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"trueup.dev/internal/engine/step"
)

// running is the state of a run. It passes the steps of the run to the hub.
//
// It is also the context of the run, and holds its first and last event, because each allocation counts.
type running struct {
	context.Context //nolint:containedctx // it is a context
	Run
	hub        *Hub
	controller *controllerObserver
	started    ReconcileStarted
	finished   ReconcileFinished

	mu       sync.Mutex
	failures []Failure
	refused  []refusedWrite
	// delayed is the reason for the delay of the next reconcile, or "".
	delayed CauseType
	// at is the path of the step that was entered last and has not ended.
	at    []string
	stuck StuckReporter
	// dropped holds the fields that writes have lost, until the call that has lost them ends, and lost holds those of
	// ended calls.
	dropped []droppedField
	lost    []lostFields
	// seen is what the detection of loops needs.
	seen seen
}

type runKey struct{}

func (r *running) Value(key any) any {
	if _, ok := key.(runKey); ok {
		return r
	}
	return r.Context.Value(key)
}

func runningFrom(ctx context.Context) *running {
	r, _ := ctx.Value(runKey{}).(*running)
	return r
}

// RunFrom returns the run that the context belongs to, or nil if the reconcile is not observed.
func RunFrom(ctx context.Context) *Run {
	if r := runningFrom(ctx); r != nil {
		return &r.Run
	}
	return nil
}

// finish completes the last event of the run, except for what the reconciler returned.
func (r *running) finish() {
	r.finished.Duration, r.finished.Refused = time.Since(r.Started), r.refusals()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished.Failures = r.failures
}

func (r *running) delay() CauseType {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.delayed, CauseRequeue)
}

func (r *running) StepStarted(ctx context.Context, started step.Started) context.Context {
	r.seen.hasSteps.Store(true)
	r.enter(started.Path)
	event := stepsStarted.Get().(*StepStarted)
	defer stepsStarted.Put(event)
	*event = StepStarted{Run: &r.Run, Path: started.Path, Item: started.Item}
	return r.hub.Observe(ctx, event)
}

func (r *running) enter(path []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = path
}

func (r *running) StepFinished(ctx context.Context, finished step.Finished) {
	r.enter(finished.Path[:max(0, len(finished.Path)-1)])
	outcome, reason := Succeeded, ""
	switch {
	case finished.Panicked:
		outcome = Panicked
	case finished.Err != nil && step.Ignores(ctx, finished.Err):
		outcome, reason = Halted, step.Explain(ctx, finished.Err)
	case finished.Err != nil:
		outcome = Failed
	}
	event := stepsFinished.Get().(*StepFinished)
	defer stepsFinished.Put(event)
	*event = StepFinished{
		Run: &r.Run, Path: finished.Path, Item: finished.Item, Result: finished.Result, Err: finished.Err,
		Outcome: outcome, Reason: reason, Duration: finished.Duration,
	}
	r.hub.Observe(ctx, event)
}

// Events are reused.
var (
	stepsStarted  = sync.Pool{New: func() any { return &StepStarted{} }}
	stepsFinished = sync.Pool{New: func() any { return &StepFinished{} }}
	finishedCalls = sync.Pool{New: func() any { return &Call{} }}
)

// ReportFailures sets the failures of the run of a context. Reconcilers call it before they return an error to the
// controller.
func ReportFailures(ctx context.Context, failures []step.Failure) {
	r := runningFrom(ctx)
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = nil
	for _, f := range failures {
		r.failures = append(r.failures, Failure{Step: f.Path, Object: f.Object, Err: f.Err})
	}
}

func (r *running) delays(why CauseType) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delayed = why
}

// ReportTracked passes a tracked reference to the hub, for the run of a context.
func ReportTracked(ctx context.Context, tracked Tracked) {
	if r := runningFrom(ctx); r != nil {
		tracked.Run, tracked.Path = &r.Run, slices.Clip(step.Names(ctx))
		r.hub.Observe(ctx, &tracked)
	}
}
