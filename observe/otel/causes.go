// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
)

// addCauses adds a link or an event for each cause to the span of the reconcile. It is called at the end: a watch event
// can arrive before the answer of the write that caused it.
func (r *reconcile) addCauses() {
	for i := range r.run.Causes {
		cause := &r.run.Causes[i]
		parts := cause.Parts()
		attributes := causeAttributes(cause, parts)
		if origin := r.listener.origins.of(r.run, cause, parts); origin.IsSampled() {
			r.root.recorded.AddLink(trace.Link{SpanContext: origin, Attributes: attributes})
			continue
		}
		r.root.recorded.AddEvent("trueup.cause", trace.WithTimestamp(cause.At), trace.WithAttributes(attributes...))
	}
}

func causeAttributes(c *observe.Cause, parts []string) []attribute.KeyValue {
	attributes := append(objectAttributes(c.Kind, c.Object), keyCause.String(string(c.Type)))
	if c.Verb != "" {
		attributes = append(attributes, keyEvent.String(string(c.Verb)))
	}
	if version := c.ResourceVersion(); version != "" {
		attributes = append(attributes, keyResourceVersion.String(version))
	}
	if len(parts) > 0 {
		attributes = append(attributes, keyChanged.StringSlice(parts))
	}
	if manager := c.By(); manager != "" {
		attributes = append(attributes, keyManager.String(manager))
	}
	if c.Count > 1 {
		attributes = append(attributes, keyCount.Int(c.Count))
	}
	if c.After > 0 {
		attributes = append(attributes, seconds(keyDelay, c.After))
	}
	if c.Attempt > 0 {
		attributes = append(attributes, keyAttempt.Int(c.Attempt))
	}
	if c.Err != nil {
		attributes = append(attributes, keyError.String(c.Err.Error()))
	}
	return attributes
}

// maxOrigins is the number of writes, and of reconciles, that are kept to link to them.
const maxOrigins = 10_000

// origins holds the spans of writes and reconciles that may cause reconciles.
type origins struct {
	mu         sync.Mutex
	writes     recent[write]
	reconciles recent[request]
}

// write identifies a state of an object. The version of a deletion is "".
type write struct {
	kind    schema.GroupKind
	object  types.NamespacedName
	version string
}

type request struct {
	controller string
	object     types.NamespacedName
}

func newOrigins() *origins {
	return &origins{
		writes:     recent[write]{spans: map[write]trace.SpanContext{}},
		reconciles: recent[request]{spans: map[request]trace.SpanContext{}},
	}
}

// wrote keeps the span of a successful write, if it causes an event.
func (o *origins) wrote(c *observe.Call, span trace.SpanContext) {
	if c.Verb == observe.VerbDeleteCollection || c.Verb != observe.VerbDelete && (c.NoOp || c.After == "") {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writes.put(write{c.Kind.GroupKind(), c.Object, c.After}, span)
}

// finished keeps the span of a reconcile that another one follows. span is nil for one that is not traced.
func (o *origins) finished(e *observe.ReconcileFinished, span trace.Span) {
	key := request{e.Run.Name(), e.Run.Object}
	follows := e.Err != nil || e.Panicked || !e.Result.IsZero()
	o.mu.Lock()
	defer o.mu.Unlock()
	if span != nil && follows {
		o.reconciles.put(key, span.SpanContext())
	} else if _, ok := o.reconciles.spans[key]; ok {
		o.reconciles.put(key, trace.SpanContext{})
	}
}

// of returns the span of what caused a run, or an empty one.
func (o *origins) of(run *observe.Run, cause *observe.Cause, parts []string) trace.SpanContext {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch cause.Type {
	case observe.CauseRequeue, observe.CauseRetry, observe.CauseStaleRead, observe.CauseLoopDelay:
		return o.reconciles.spans[request{run.Name(), run.Object}]
	case observe.CauseStartUp, observe.CauseResync:
		return trace.SpanContext{} // the write of this version is not the reason
	}
	key := write{cause.Kind.GroupKind(), cause.Object, cause.ResourceVersion()}
	if key.version == "" {
		return trace.SpanContext{}
	}
	if span, ok := o.writes.spans[key]; ok {
		return span
	}
	// A deletion returns no version. It marks an object that has finalizers.
	if cause.Verb == observe.Deleted || slices.Contains(parts, "deletionTimestamp") {
		key.version = ""
		return o.writes.spans[key]
	}
	return trace.SpanContext{}
}

// recent holds the last spans that were put.
type recent[K comparable] struct {
	spans  map[K]trace.SpanContext
	keys   []K // a ring
	oldest int // the index of the oldest key
}

func (r *recent[K]) put(key K, span trace.SpanContext) {
	if _, ok := r.spans[key]; !ok {
		if len(r.keys) < maxOrigins {
			r.keys = append(r.keys, key)
		} else {
			delete(r.spans, r.keys[r.oldest])
			r.keys[r.oldest] = key
			r.oldest = (r.oldest + 1) % maxOrigins
		}
	}
	r.spans[key] = span
}
