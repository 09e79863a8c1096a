// SPDX-License-Identifier: Apache-2.0

// Package observed hands the generation that a reconcile works on from the root reconciler to what sets conditions below it.
package observed

import (
	"context"
	"reflect"
)

type key struct{}

type observation struct {
	generation int64
	// status is a pointer to the status struct of the resource.
	status reflect.Value
}

// WithGeneration returns a context for the reconcile of a resource of that generation. The status is the addressable status struct of the resource.
func WithGeneration(ctx context.Context, generation int64, status reflect.Value) context.Context {
	return context.WithValue(ctx, key{}, &observation{generation: generation, status: status})
}

// Generation returns the generation that conditions of the status are computed from, and 0 when that is not known: outside of a controller, or when it is not
// the status of the reconciled resource. The status is a pointer to the status struct, or to a struct embedded in it.
func Generation(ctx context.Context, status any) int64 {
	o, ok := ctx.Value(key{}).(*observation)
	if !ok {
		return 0
	}
	value := reflect.ValueOf(status)
	if value.Kind() != reflect.Pointer {
		return 0
	}
	if at, start := value.Pointer(), o.status.Addr().Pointer(); at < start || at-start >= o.status.Type().Size() {
		return 0
	}
	return o.generation
}
