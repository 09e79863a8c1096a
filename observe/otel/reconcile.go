// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"trueup.dev/observe"
)

// reconcile is the trace of a reconcile. Its spans are buffered until the reconcile does something, because a reconcile
// that does nothing is not traced. Then they are started with the times at which they began.
type reconcile struct {
	listener *listener
	run      *observe.Run
	root     *span

	mu sync.Mutex // protects what follows, and the fields of spans that change
	// kept reports whether the reconcile is traced, and ended whether it has finished.
	kept, ended bool
	buffered    []*span // in the order in which they began. It is empty if the reconcile is kept.
	count       int     // the number of spans
	omitted     int     // the number of further steps and calls
}

func (l *listener) reconcileStarted(ctx context.Context, run *observe.Run) context.Context {
	r := &reconcile{listener: l, run: run, buffered: make([]*span, 0, 16)}
	r.root = &span{reconcile: r, parentContext: ctx, started: run.Started}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(r.root)
	if l.options.NoOps {
		r.keep()
	}
	return r.root.handlerContext()
}

// add adds a span. It reports whether there was room for it.
func (r *reconcile) add(s *span) bool {
	switch {
	case r.ended && !r.kept:
		return false
	case r.count == r.listener.options.MaxSpans:
		r.omitted++
		return false
	}
	r.count++
	if r.kept {
		s.start()
	} else {
		r.buffered = append(r.buffered, s)
	}
	return true
}

// keep starts the spans that are buffered. Parents are before their children.
func (r *reconcile) keep() {
	if r.kept || r.ended {
		return
	}
	r.kept = true
	for _, s := range r.buffered {
		s.start()
	}
	r.buffered = nil
}

// stepStarted adds a step below s.
func (s *span) stepStarted(ctx context.Context, e *observe.StepStarted) context.Context {
	r := s.reconcile
	r.mu.Lock()
	defer r.mu.Unlock()
	step := &span{reconcile: r, parent: s, parentContext: ctx, started: time.Now(), path: e.Path, item: e.Item}
	if !r.add(step) {
		return ctx
	}
	return step.handlerContext()
}

// stepFinished ends s, unless the step was omitted. Then s is a step above.
func (s *span) stepFinished(e *observe.StepFinished) {
	r := s.reconcile
	r.mu.Lock()
	defer r.mu.Unlock()
	failed := e.Outcome == observe.Failed || e.Outcome == observe.Panicked
	if failed {
		r.keep()
	}
	if s.parent == nil || !slices.Equal(s.path, e.Path) {
		return
	}
	if failed {
		s.parent.failedBelow = true
	}
	s.outcome = e.Outcome
	if failed {
		s.err = e.Err
	}
	s.end(time.Now())
}

// called adds a call below s.
func (s *span) called(ctx context.Context, e *observe.Call) {
	r := s.reconcile
	r.mu.Lock()
	defer r.mu.Unlock()
	writes, failed := e.IsWrite() && !e.DryRun, callFailed(e)
	if writes || failed {
		r.keep()
	}
	now := time.Now()
	call := &span{reconcile: r, parent: s, parentContext: ctx, started: now.Add(-e.Duration), call: new(*e)}
	made := s
	if r.add(call) {
		made = call
		if failed {
			call.err, s.failedBelow = e.Err, true
		}
		call.end(now)
	}
	if writes && e.Err == nil && made.recorded != nil {
		r.listener.origins.wrote(e, made.recorded.SpanContext())
	}
}

// callFailed reports whether a call failed. Controllers read objects to see whether they exist.
func callFailed(e *observe.Call) bool {
	return e.Err != nil && (e.Verb != observe.VerbGet || !apierrors.IsNotFound(e.Err))
}

func (r *reconcile) finished(e *observe.ReconcileFinished) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Err != nil || e.Panicked {
		r.keep()
	}
	r.ended, r.buffered = true, nil
	if r.kept {
		r.root.err = e.Err
		if e.Panicked {
			r.root.outcome = observe.Panicked
		}
		if r.root.recorded.IsRecording() {
			r.root.recorded.SetAttributes(resultAttributes(e, r.omitted)...)
			r.addCauses()
		}
	}
	r.listener.origins.finished(e, r.root.recorded)
	r.root.end(time.Now())
}
