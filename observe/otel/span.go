// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"trueup.dev/observe"
)

// span is the span of a reconcile, a step or a call. The span of a reconcile or a step is on the context of handlers.
// It stands for a span of the provider that does not exist until the reconcile is kept.
type span struct {
	noop.Span // for methods that later versions of OpenTelemetry add

	reconcile     *reconcile
	parent        *span           // nil for the reconcile
	parentContext context.Context // the span may start later
	context       spanContext     // of handlers
	path          []string        // of a step
	item          bool            // whether the last name of the path is data
	call          *observe.Call   // of a call
	started       time.Time

	// The fields below are protected by the mutex of the reconcile.

	// recorded is the span of the provider, and name its name.
	recorded trace.Span
	name     string
	// changes are those that handlers made before the span was recorded.
	changes []func(trace.Span)
	outcome observe.Outcome
	err     error
	// failedBelow reports whether a step or a call directly below failed.
	failedBelow bool
	ended       time.Time
}

// spanContext is a context with a span. It is part of the span to save an allocation.
type spanContext struct {
	context.Context
	span *span
}

func (c *spanContext) Value(key any) any {
	if key == any(c.span.reconcile.listener) {
		return c.span
	}
	return c.Context.Value(key)
}

// handlerContext returns the context of the handlers of a step or a reconcile.
func (s *span) handlerContext() context.Context {
	s.context = spanContext{trace.ContextWithSpan(s.parentContext, s), s}
	return &s.context
}

// stepName returns the name of the span of a step: the names of the steps joined with dots, with a star for each item,
// as in metrics.
func (s *span) stepName() string {
	above := s.parent
	names := slices.Clone(s.path[min(len(above.path), len(s.path)):])
	if s.item && len(names) > 0 {
		names[len(names)-1] = "*"
	}
	if len(above.path) > 0 {
		names = slices.Insert(names, 0, above.name)
	}
	return strings.Join(names, ".")
}

// start starts the span of the provider, and ends it if s has ended.
func (s *span) start() {
	ctx := s.parentContext
	if _, buffered := trace.SpanFromContext(ctx).(*span); buffered {
		// The parent is the span of the provider. Another listener of this package may have put its span there.
		var parent trace.Span = noop.Span{}
		if s.parent != nil {
			parent = s.parent.recorded
		}
		ctx = trace.ContextWithSpan(ctx, parent)
	}
	name, kind, attributes := s.describe()
	s.name = name
	_, s.recorded = s.reconcile.listener.tracer.Start(
		ctx, name, trace.WithTimestamp(s.started), trace.WithSpanKind(kind), trace.WithAttributes(attributes...),
	)
	for _, change := range s.changes {
		change(s.recorded)
	}
	s.changes = nil
	if !s.ended.IsZero() {
		s.finish()
	}
}

func (s *span) end(at time.Time) {
	s.ended = at
	if s.recorded != nil {
		s.finish()
	}
}

// finish ends the span of the provider.
func (s *span) finish() {
	if s.outcome != "" && s.path != nil {
		s.recorded.SetAttributes(keyOutcome.String(string(s.outcome)))
	}
	switch {
	case s.outcome == observe.Panicked:
		s.recorded.SetStatus(codes.Error, "panic")
		s.recorded.SetAttributes(errorTypePanic)
	case s.err != nil:
		s.recorded.SetStatus(codes.Error, s.err.Error())
		s.recorded.SetAttributes(errorType(s.err))
		if !s.failedBelow { // an error is recorded where it occurred
			s.recorded.RecordError(s.err, trace.WithTimestamp(s.ended))
		}
	}
	s.recorded.End(trace.WithTimestamp(s.ended))
}

func (s *span) keep() {
	s.reconcile.mu.Lock()
	defer s.reconcile.mu.Unlock()
	s.reconcile.keep()
}

// change changes the span of the provider now, or as soon as it exists.
func (s *span) change(change func(trace.Span)) {
	s.reconcile.mu.Lock()
	defer s.reconcile.mu.Unlock()
	switch {
	case s.recorded != nil:
		change(s.recorded)
	case s.isOpen():
		s.changes = append(s.changes, change)
	}
}

func (s *span) isOpen() bool { return s.ended.IsZero() && !s.reconcile.ended }

// SpanContext returns the context of the span of the provider. A caller needs it to refer to the span, for example from
// a span below, so the reconcile is kept.
func (s *span) SpanContext() trace.SpanContext {
	s.reconcile.mu.Lock()
	defer s.reconcile.mu.Unlock()
	s.reconcile.keep()
	if s.recorded == nil {
		return trace.SpanContext{} // the reconcile has ended, and was not kept
	}
	return s.recorded.SpanContext()
}

// IsRecording implements [trace.Span]. A span that is not recorded yet may be.
func (s *span) IsRecording() bool {
	s.reconcile.mu.Lock()
	defer s.reconcile.mu.Unlock()
	if s.recorded != nil {
		return s.recorded.IsRecording()
	}
	return s.isOpen()
}

// TracerProvider implements [trace.Span].
func (s *span) TracerProvider() trace.TracerProvider { return s.reconcile.listener.provider }

// End does nothing: the span ends with the step.
func (*span) End(...trace.SpanEndOption) {}

// SetName implements [trace.Span].
func (s *span) SetName(name string) { s.change(func(recorded trace.Span) { recorded.SetName(name) }) }

// SetAttributes implements [trace.Span].
func (s *span) SetAttributes(attributes ...attribute.KeyValue) {
	attributes = slices.Clone(attributes)
	s.change(func(recorded trace.Span) { recorded.SetAttributes(attributes...) })
}

// AddEvent implements [trace.Span].
func (s *span) AddEvent(name string, options ...trace.EventOption) {
	options = append([]trace.EventOption{trace.WithTimestamp(time.Now())}, options...)
	s.change(func(recorded trace.Span) { recorded.AddEvent(name, options...) })
}

// AddLink implements [trace.Span].
func (s *span) AddLink(link trace.Link) {
	s.change(func(recorded trace.Span) { recorded.AddLink(link) })
}

// SetStatus implements [trace.Span]. A reconcile with an error is kept.
func (s *span) SetStatus(code codes.Code, description string) {
	if code == codes.Error {
		s.keep()
	}
	s.change(func(recorded trace.Span) { recorded.SetStatus(code, description) })
}

// RecordError implements [trace.Span]. A reconcile with an error is kept.
func (s *span) RecordError(err error, options ...trace.EventOption) {
	if err == nil {
		return
	}
	s.keep()
	s.change(func(recorded trace.Span) { recorded.RecordError(err, options...) })
}
