// SPDX-License-Identifier: Apache-2.0

// Package registration records which reconciler of a tree registers which watch while the tree is set up.
package registration

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/builder"

	"trueup.dev/internal/ctrlfields"
)

// Record records the watches of one builder. One goroutine sets up a tree.
type Record struct {
	builder *builder.Builder
	stack   []any
	// inputs and sources are the reconcilers that registered the watches and the raw sources of the builder, by index.
	inputs, sources []any
}

type recordKey struct{}

// Begin returns the context to set up the tree below a root, and the record of its watches. Watches of the root itself
// are attributed to nil.
func Begin(ctx context.Context, bldr *builder.Builder) (context.Context, *Record) {
	r := &Record{builder: bldr, stack: []any{nil}}
	return context.WithValue(ctx, recordKey{}, r), r
}

// Enter records that the set-up of part begins. The caller calls the returned function when it ends. Watches of a part
// that Go cannot compare are attributed to the reconciler that contains it.
func Enter(ctx context.Context, part any) (leave func()) {
	r, _ := ctx.Value(recordKey{}).(*Record)
	if r == nil {
		return func() {}
	}
	r.attribute()
	if !reflect.ValueOf(part).Comparable() {
		part = r.stack[len(r.stack)-1] // a list, for example: it has no identity
	}
	r.stack = append(r.stack, part)
	depth := len(r.stack)
	return func() {
		r.attribute()
		r.stack = r.stack[:depth-1]
	}
}

// attribute attributes the watches since the last call to the reconciler that is being set up.
func (r *Record) attribute() {
	current := r.stack[len(r.stack)-1]
	inputs, _ := ctrlfields.WatchesInputs(r.builder)
	for len(r.inputs) < len(inputs) {
		r.inputs = append(r.inputs, current)
	}
	sources, _ := ctrlfields.RawSources(r.builder)
	for len(r.sources) < len(sources) {
		r.sources = append(r.sources, current)
	}
}

// Watch returns the reconciler that registered a watch of the builder, by its index.
func (r *Record) Watch(index int) any { return at(r.inputs, index) }

// Source returns the reconciler that registered a raw source of the builder, by its index.
func (r *Record) Source(index int) any { return at(r.sources, index) }

func at(reconcilers []any, index int) any {
	if index < len(reconcilers) {
		return reconcilers[index]
	}
	return nil
}
