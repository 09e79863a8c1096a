// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
)

// TypedStore reads and writes the objects of one kind. T is the Go type of the objects, for example *MyKind, or
// [Object] for a store that is used through interfaces.
//
// A store never changes its arguments, and writes only the fields that the caller changed. The result is a new object,
// as stored by the API server, with its apiVersion and kind set. If a method takes an identifier and an object, both
// must have the same namespace and name; if they are empty in the object, they are taken from the identifier. Use
// [k8s.io/apimachinery/pkg/api/errors] to inspect errors of the API.
//
// Reads use the [ReadSource]. All writes go through the client. A store is safe for concurrent use.
type TypedStore[T Object] struct {
	kind   Kind
	client Client
	live   client.Reader
	source ReadSource
}

// NewTypedStore returns the store of a kind. It returns an error that lists all problems if the kind is invalid, its
// objects are not of type T, or the scheme of the client does not have their Go type. Use [AddToScheme] to register it.
// Options: a [ReadSource], default [Cached].
func NewTypedStore[T Object](kind Kind, clients ClientGenerator, opts ...StoreOption) (*TypedStore[T], error) {
	if err := kind.Validate(); err != nil {
		return nil, err
	}
	if nilcheck.IsNilPointer(clients) {
		return nil, fmt.Errorf("the store of kind %s must have a ClientGenerator", kind)
	}
	c, err := clients.ClientFor(kind)
	if err != nil {
		return nil, fmt.Errorf("the store of kind %s: %w", kind, err)
	}
	if nilcheck.IsNilPointer(c) {
		return nil, fmt.Errorf("the store of kind %s: ClientFor of %T must return a client or an error", kind, clients)
	}
	o := storeOptions{source: Cached}
	for _, opt := range opts {
		opt.applyToStore(&o)
	}
	s := &TypedStore[T]{kind: kind, client: c, source: o.source}
	if generator, ok := clients.(LiveReaderGenerator); ok {
		if s.live, err = generator.LiveReaderFor(kind); err != nil {
			return nil, fmt.Errorf("the store of kind %s: %w", kind, err)
		}
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	if nilcheck.IsNilPointer(s.live) {
		s.live, s.source = c, Live // so that lists are read in pages
	}
	return s, nil
}

func (s *TypedStore[T]) validate() error {
	problems := []error{}
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if s.source != Cached && s.source != Live {
		add(
			"the store of kind %s has an invalid ReadSource %q: must be one of %q", s.kind, s.source, []ReadSource{Cached, Live},
		)
	}
	object, list := s.kind.ZeroValue(), s.kind.ZeroListValue()
	if _, ok := object.(T); !ok {
		add("the store of kind %s cannot hold %s: ZeroValue is %T", s.kind, reflect.TypeFor[T](), object)
	}
	gvk := s.kind.GroupVersionKind()
	if known, err := s.client.GroupVersionKindFor(object); err != nil {
		add("the client does not know kind %s, add it to the scheme: %w", s.kind, err)
	} else if known != gvk {
		add("the client knows %T as %s, not as kind %s", object, known, s.kind)
	}
	if known, err := s.client.GroupVersionKindFor(list); err != nil {
		add("the client does not know the list of kind %s, add it to the scheme: %w", s.kind, err)
	} else if known != listKind(gvk) {
		add("the client knows %T as %s, not as the list of kind %s", list, known, s.kind)
	}
	return errors.Join(problems...)
}

// Kind returns the kind of the objects in the store.
func (s *TypedStore[T]) Kind() Kind { return s.kind }

// Client returns the client of the store. Use it for operations that the store does not support.
func (s *TypedStore[T]) Client() Client { return s.client }

// Get returns the object with the identifier.
func (s *TypedStore[T]) Get(ctx context.Context, id Identifier, from ...ReadSource) (T, error) {
	var none T
	if err := s.check(id); err != nil {
		return none, s.failed("get", id, err)
	}
	obj := s.kind.ZeroValue().(T)
	if err := s.reader(from...).Get(ctx, id.NamespacedName(), obj); err != nil {
		return none, s.failed("get", id, err)
	}
	return s.stored(obj), nil
}

func (s *TypedStore[T]) reader(from ...ReadSource) client.Reader {
	source := s.source
	for _, source = range from {
	}
	if source == Live {
		return s.live
	}
	return s.client
}

// check returns the problems of an identifier.
func (s *TypedStore[T]) check(id Identifier) error {
	problems := []error{}
	if id.Name == "" {
		problems = append(problems, errors.New("name is required"))
	}
	return errors.Join(append(problems, s.kind.checkNamespace(id.Namespace))...)
}

// outgoing returns a copy of obj with the identifier, and an error that lists all reasons not to send it.
func (s *TypedStore[T]) outgoing(id Identifier, obj T) (T, error) {
	var none T
	if nilcheck.IsNilPointer(obj) {
		return none, errors.New("object must not be nil")
	}
	problems := []error{s.check(id)}
	if obj.GetName() != "" && obj.GetName() != id.Name {
		problems = append(problems, fmt.Errorf("the object's name is %q", obj.GetName()))
	}
	if obj.GetNamespace() != "" && obj.GetNamespace() != id.Namespace {
		problems = append(problems, fmt.Errorf("the object's namespace is %q", obj.GetNamespace()))
	}
	if !s.kind.is(obj) {
		problems = append(problems, fmt.Errorf("the object is %T of kind %s", obj, obj.GetObjectKind().GroupVersionKind()))
	}
	if err := errors.Join(problems...); err != nil {
		return none, err
	}
	out := copyOf(obj)
	out.SetNamespace(id.Namespace)
	out.SetName(id.Name)
	out.GetObjectKind().SetGroupVersionKind(s.kind.GroupVersionKind())
	return out, nil
}

// stored sets the kind of an object that a client returned: decoders do not set it for objects with a Go type.
func (s *TypedStore[T]) stored(obj T) T {
	// Write only if necessary: a cache may be configured to return its own objects, which must not be changed.
	if kind := obj.GetObjectKind(); kind.GroupVersionKind() != s.kind.GroupVersionKind() {
		kind.SetGroupVersionKind(s.kind.GroupVersionKind())
	}
	return obj
}

// result returns the result of a write. obj is the object that the client returned.
func (s *TypedStore[T]) result(verb string, id Identifier, obj T, err error) (T, error) {
	if err != nil {
		var none T
		return none, s.failed(verb, id, err)
	}
	return s.stored(obj), nil
}

func (s *TypedStore[T]) failed(verb string, id Identifier, err error) error {
	return fmt.Errorf("%s %s %q: %w", verb, s.kind.Kind(), id, err)
}

func copyOf[T runtime.Object](obj T) T {
	return obj.DeepCopyObject().(T)
}
