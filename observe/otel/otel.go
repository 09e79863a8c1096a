// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"trueup.dev/observe"
)

// scope is the name of the instrumentation.
const scope = "trueup.dev/observe/otel"

const defaultMaxSpans = 1000

// Options are options of [New].
type Options struct {
	// NoOps also traces reconciles that did nothing: that wrote nothing, and in which nothing failed. Defaults to false.
	NoOps bool
	// MaxSpans is the maximum number of spans of a reconcile. Further steps and calls have no span of their own, and the
	// span of the reconcile has their number as trueup.reconcile.omitted_spans. Defaults to 1,000.
	MaxSpans int
}

// New returns a listener that makes spans with a provider, or with the global one of OpenTelemetry if provider is nil.
// It is safe for concurrent use. Use one listener for each manager.
func New(provider trace.TracerProvider, options Options) observe.Listener {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	options.MaxSpans = cmp.Or(options.MaxSpans, defaultMaxSpans)
	return &listener{
		provider: provider, options: options, origins: newOrigins(),
		tracer: provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
	}
}

// listener is also the key of its spans on contexts.
type listener struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
	options  Options
	origins  *origins
}

// Observe implements [observe.Listener]. For [observe.ReconcileStarted] and [observe.StepStarted], it returns a context
// with a span.
func (l *listener) Observe(ctx context.Context, event observe.Event) context.Context {
	switch e := event.(type) {
	case *observe.ReconcileStarted:
		return l.reconcileStarted(ctx, e.Run)
	case *observe.StepStarted:
		if s := l.spanOf(ctx, e.Run); s != nil {
			return s.stepStarted(ctx, e)
		}
	case *observe.StepFinished:
		if s := l.spanOf(ctx, e.Run); s != nil {
			s.stepFinished(e)
		}
	case *observe.Call:
		if s := l.spanOf(ctx, e.Run); s != nil {
			s.called(ctx, e)
		}
	case *observe.Tracked:
		if s := l.spanOf(ctx, e.Run); s != nil {
			s.AddEvent("trueup.tracked", trace.WithAttributes(trackedAttributes(e)...))
		}
	case *observe.StaleWait:
		if s := l.spanOf(ctx, e.Run); s != nil {
			s.AddEvent("trueup.stale_wait", trace.WithAttributes(seconds(keyDelay, e.Wait)))
		}
	case *observe.LoopFound:
		if s := l.spanOf(ctx, e.Run); s != nil {
			s.keep()
			s.AddEvent("trueup.loop", trace.WithAttributes(loopAttributes(e)...))
		}
	case *observe.ReconcileFinished:
		if s := l.spanOf(ctx, e.Run); s != nil {
			s.reconcile.finished(e)
		}
	}
	return ctx
}

// spanOf returns the innermost span of this listener on a context, if it is part of the run. A listener that is added
// while a reconcile runs has none for it.
func (l *listener) spanOf(ctx context.Context, run *observe.Run) *span {
	if s, ok := ctx.Value(l).(*span); ok && s.reconcile.run == run {
		return s
	}
	return nil
}
