// SPDX-License-Identifier: Apache-2.0

package ctrlfields

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Kind is what a [source.Kind] watches.
type Kind struct {
	Object client.Object
	Cache  cache.Cache
	// Handler has the Go type of the object. It is nil if there is none.
	Handler any
	// Predicates are unknown, and TypedPredicates is true, if they have the Go type of the object.
	Predicates      []predicate.Predicate
	TypedPredicates bool
}

// KindOf returns what a source watches, if it is the result of [source.Kind].
func KindOf(src any) (kind Kind, ok bool) {
	of, ok := structOf(src)
	if !ok {
		return kind, false
	}
	kind.Object, ok = exported[client.Object](of, "Type")
	if !ok {
		return kind, false
	}
	kind.Cache, ok = exported[cache.Cache](of, "Cache")
	if !ok {
		return kind, false
	}
	kind.Handler, _ = exported[any](of, "Handler")
	predicates, known := exported[[]predicate.Predicate](of, "Predicates")
	kind.Predicates, kind.TypedPredicates = predicates, !known
	return kind, true
}

// WithHandler returns a copy of a source of untyped events whose handler is the result of wrap. It returns false if the
// source has no such handler.
func WithHandler(src source.Source, wrap func(handler.EventHandler) handler.EventHandler) (source.Source, bool) {
	of, ok := structOf(src)
	if !ok {
		return nil, false
	}
	original, ok := exported[handler.EventHandler](of, "Handler")
	if !ok || of.FieldByName("Handler").Type() != reflect.TypeFor[handler.EventHandler]() {
		return nil, false
	}
	replaced := reflect.New(of.Type())
	replaced.Elem().Set(of)
	replaced.Elem().FieldByName("Handler").Set(reflect.ValueOf(wrap(original)))
	result, ok := replaced.Interface().(source.Source)
	return result, ok
}
