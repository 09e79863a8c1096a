// SPDX-License-Identifier: Apache-2.0

// Package observed hands the generation that a reconcile works on from the root reconciler to what sets conditions below it.
package observed

import (
	"context"
	"reflect"
)

type key struct{}

// Observation is what one reconcile observes. The methods of a nil Observation do nothing.
type Observation struct {
	generation int64
	// status is the addressable status struct of the resource.
	status reflect.Value
	// managed are the types of the conditions that the reconcilers manage, and false for those that they have set with a generation of their own.
	managed map[string]bool
}

// WithGeneration returns a context for the reconcile of a resource of that generation. The status is the addressable status struct of the resource.
func WithGeneration(ctx context.Context, generation int64, status reflect.Value) (context.Context, *Observation) {
	o := &Observation{generation: generation, status: status}
	return context.WithValue(ctx, key{}, o), o
}

// Of returns the observation that the conditions of the status belong to, and nil when that is not known: outside of a controller, or when it is not the
// status of the reconciled resource. The status is a pointer to the status struct, or to a struct embedded in it.
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

// Generation returns the generation that conditions are computed from, 0 where that is not known.
func (o *Observation) Generation() int64 {
	if o == nil {
		return 0
	}
	return o.generation
}

// Manage notes conditions that the reconcilers manage, and whether their generation is up to the root reconciler.
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

// IsManaged reports whether the root reconciler keeps the generation of a condition.
func (o *Observation) IsManaged(conditionType string) bool {
	return o != nil && o.managed[conditionType]
}
