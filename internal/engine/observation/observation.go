// SPDX-License-Identifier: Apache-2.0

// Package observation passes the generation that is reconciled from the root reconciler to the code that sets
// conditions.
package observation

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/objectstatus"
)

type key struct{}

// Observation describes what one reconcile observes. The methods of a nil Observation do nothing. It is also the
// context of the reconcile, to save allocations.
type Observation struct {
	context.Context //nolint:containedctx // it is a context

	generation int64
	// status is the addressable status struct of the resource.
	status reflect.Value
	*conditions
	// own are the conditions, unless a copy of the resource is observed.
	own conditions
}

// Value returns what belongs to the context.
func (o *Observation) Value(wanted any) any {
	if _, ok := wanted.(key); ok {
		return o
	}
	return o.Context.Value(wanted)
}

// conditions are those that the reconcilers manage. A resource and its casts share them.
type conditions struct {
	// managed holds their types. The value is false if the condition was set with an explicit generation.
	managed map[string]bool
	// summaries are the types of the conditions whose generation follows from that of others.
	summaries map[string]bool
}

// WithGeneration returns a context for the reconcile of a resource with that generation. The status is the addressable
// status struct of the resource.
func WithGeneration(ctx context.Context, generation int64, status reflect.Value) (context.Context, *Observation) {
	o := &Observation{Context: ctx, generation: generation, status: status}
	o.conditions = &o.own
	return o, o
}

// WithCopy returns a context in which the conditions of a copy of the observed resource belong to the observation, for
// example of a cast. It returns ctx if nothing is observed, or if the copy has no status struct.
func WithCopy(ctx context.Context, copied client.Object) context.Context {
	o, ok := ctx.Value(key{}).(*Observation)
	if !ok {
		return ctx
	}
	status := objectstatus.Of(copied).Value(copied)
	if status.Kind() != reflect.Struct {
		return ctx
	}
	return &Observation{Context: ctx, generation: o.generation, status: status, conditions: o.conditions}
}

// Of returns the observation that the conditions of the status belong to, or nil if it is unknown: outside of a
// controller, or if it is not the status of the reconciled resource. The status is a pointer to the status struct, or
// to a struct embedded in it.
func Of(ctx context.Context, status any) *Observation {
	o, ok := ctx.Value(key{}).(*Observation)
	if !ok {
		return nil
	}
	value := reflect.ValueOf(status)
	if value.Kind() != reflect.Pointer {
		return nil
	}
	if at, start := value.Pointer(), o.status.Addr().Pointer(); at < start || at-start >= o.status.Type().Size() {
		return nil
	}
	return o
}

// Generation returns the generation from which conditions are computed, 0 if it is unknown.
func (o *Observation) Generation() int64 {
	if o == nil {
		return 0
	}
	return o.generation
}

// Manage records conditions that the reconcilers manage. byRoot reports whether the root reconciler sets their
// generation.
func (o *Observation) Manage(byRoot bool, conditionTypes ...string) {
	if o == nil {
		return
	}
	if o.managed == nil {
		o.managed = make(map[string]bool, len(conditionTypes))
	}
	for _, t := range conditionTypes {
		if known, ok := o.managed[t]; !ok || known {
			o.managed[t] = byRoot
		}
	}
}

// Summarize records a condition whose generation follows from that of others.
func (o *Observation) Summarize(conditionType string) {
	if o.summaries == nil {
		o.summaries = map[string]bool{}
	}
	o.summaries[conditionType] = true
}

// IsSummary reports whether the generation of a condition follows from that of others.
func (o *Observation) IsSummary(conditionType string) bool {
	return o != nil && o.summaries[conditionType]
}

// IsManaged reports whether the root reconciler sets the generation of a condition.
func (o *Observation) IsManaged(conditionType string) bool {
	return o != nil && o.managed[conditionType]
}
