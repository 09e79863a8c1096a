// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/step"
)

// running is the state of a run. It passes the steps of the run to the hub.
//
// It is also the context of the run, and holds its first and last event, because each allocation counts.
type running struct {
	step.Observed
	Run
	controller *controllerObserver
	started    ReconcileStarted
	finished   ReconcileFinished

	mu sync.Mutex
	// at is the path of the step that was entered last and has not ended.
	at    []string
	stuck StuckReporter
	// seen is what the detection of loops needs.
	seen seen
	// rare is nil until it is needed.
	rare *rare
}

// rare is the part of the state of a run that few runs need.
type rare struct {
	refused []refusedWrite
	// delayed is the reason for the delay of the next reconcile, or "".
	delayed CauseType
	// dropped holds the fields that writes have lost, until the call that has lost them ends, and lost holds the fields of
	// ended calls.
	dropped []droppedField
	lost    []lostFields
	// journal belongs to what was seen.
	journal guard.Journal
}

// forRare returns where the rare state is kept. r.mu must be locked, or the run not started.
func (r *running) forRare() *rare {
	if r.rare == nil {
		r.rare = &rare{}
	}
	return r.rare
}

type runKey struct{}

func (r *running) Value(key any) any {
	if _, ok := key.(runKey); ok {
		return r
	}
	return r.Observed.Value(key)
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
}

func (r *running) delay() CauseType {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rare == nil {
		return CauseRequeue
	}
	return cmp.Or(r.rare.delayed, CauseRequeue)
}

func (r *running) StepStarted(ctx context.Context, started step.Started) context.Context {
	r.seen.hasSteps.Store(true)
	r.enter(started.Path)
	event := stepsStarted.Get().(*StepStarted)
	defer stepsStarted.Put(event)
	*event = StepStarted{Run: &r.Run, Path: started.Path, Item: started.Item}
	return r.controller.hub.Observe(ctx, event)
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
	r.controller.hub.Observe(ctx, event)
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
	r.finished.Failures = nil
	for _, f := range failures {
		r.finished.Failures = append(r.finished.Failures, Failure{Step: f.Path, Object: f.Object, Err: f.Err})
	}
}

func (r *running) delays(why CauseType) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forRare().delayed = why
}

// ReportTracked passes a tracked reference to the hub, for the run of a context.
func ReportTracked(ctx context.Context, tracked Tracked) {
	if r := runningFrom(ctx); r != nil {
		tracked.Run, tracked.Path = &r.Run, slices.Clip(step.Names(ctx))
		r.controller.hub.Observe(ctx, &tracked)
	}
}
