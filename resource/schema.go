// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemaScope says where objects of a kind live.
type SchemaScope string

const (
	// NamespacedScope is that of kinds whose objects live in namespaces.
	NamespacedScope SchemaScope = "Namespaced"
	// ClusterScope is that of kinds whose objects belong to no namespace.
	ClusterScope SchemaScope = "Cluster"
)

// Schema describes a kind in one version. Implementations must be safe for concurrent use.
type Schema interface {
	// Group is the API group, empty for the core group.
	Group() string
	// Version is the version within the group.
	Version() string
	// Kind is the name of the kind.
	Kind() string
	// Plural is the name of the kind in paths of the API.
	Plural() string
	// Scope says whether objects live in namespaces.
	Scope() SchemaScope
	// ZeroValue returns a new, empty object, with its apiVersion and kind.
	ZeroValue() Object
	// ZeroListValue returns a new, empty list, with its apiVersion and kind.
	ZeroListValue() ListObject
}

// SimpleSchema is a [Schema] made of values.
type SimpleSchema struct {
	gvk    schema.GroupVersionKind
	plural string
	scope  SchemaScope
	object Object
	list   ListObject
}

var _ Schema = (*SimpleSchema)(nil)

// SimpleSchemaOption changes a default of [NewSimpleSchema].
type SimpleSchemaOption func(*SimpleSchema)

// WithKind sets the name of the kind. Default: the kind zeroValue says it is, or else the name of its Go type. Type arguments do not make a name, so that
// instances of [TypedSpecObject] and [TypedSpecStatusObject] need this option.
func WithKind(kind string) SimpleSchemaOption {
	return func(s *SimpleSchema) { s.gvk.Kind = kind }
}

// WithPlural sets the plural. Default: the kind in lower case with an English plural's ending, as [meta.UnsafeGuessKindToResource] guesses it.
func WithPlural(plural string) SimpleSchemaOption {
	return func(s *SimpleSchema) { s.plural = plural }
}

// WithScope sets the scope. Default: [NamespacedScope].
func WithScope(scope SchemaScope) SimpleSchemaOption {
	return func(s *SimpleSchema) { s.scope = scope }
}

// NewSimpleSchema describes the kind whose objects have the Go type of zeroValue and whose lists have that of zeroList. Both must be pointers; an
// *unstructured.Unstructured does for a kind without a Go type. The values are copied and may be used again.
//
// Mistakes are reported by [Kind.Validate], and with it by everything that a kind is set up with, so that schemas can be package variables.
func NewSimpleSchema(group, version string, zeroValue Object, zeroList ListObject, opts ...SimpleSchemaOption) *SimpleSchema {
	s := &SimpleSchema{scope: NamespacedScope}
	if !isNil(zeroValue) {
		s.object = zeroValue.DeepCopyObject().(Object)
		s.gvk.Kind = kindOf(zeroValue)
	}
	if !isNil(zeroList) {
		s.list = zeroList.DeepCopyObject().(ListObject)
	}
	s.gvk.Group, s.gvk.Version = group, version
	for _, opt := range opts {
		opt(s)
	}
	if s.plural == "" {
		plural, _ := meta.UnsafeGuessKindToResource(s.gvk)
		s.plural = plural.Resource
	}
	if s.object != nil {
		s.object.GetObjectKind().SetGroupVersionKind(s.gvk)
	}
	if s.list != nil {
		s.list.GetObjectKind().SetGroupVersionKind(listKind(s.gvk))
	}
	return s
}

// kindOf returns the kind an object says it is, or else the name of its Go type.
func kindOf(obj Object) string {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	if _, ok := obj.(runtime.Unstructured); ok {
		return ""
	}
	name := reflect.TypeOf(obj).Elem().Name()
	if strings.Contains(name, "[") {
		return "" // type arguments make no name of a kind
	}
	return name
}

func listKind(gvk schema.GroupVersionKind) schema.GroupVersionKind {
	gvk.Kind += "List"
	return gvk
}

// Group implements Schema.
func (s *SimpleSchema) Group() string { return s.gvk.Group }

// Version implements Schema.
func (s *SimpleSchema) Version() string { return s.gvk.Version }

// Kind implements Schema.
func (s *SimpleSchema) Kind() string { return s.gvk.Kind }

// Plural implements Schema.
func (s *SimpleSchema) Plural() string { return s.plural }

// Scope implements Schema.
func (s *SimpleSchema) Scope() SchemaScope { return s.scope }

// ZeroValue implements Schema. It returns nil where [NewSimpleSchema] was given none.
func (s *SimpleSchema) ZeroValue() Object {
	if s.object == nil {
		return nil
	}
	return s.object.DeepCopyObject().(Object)
}

// ZeroListValue implements Schema. It returns nil where [NewSimpleSchema] was given none.
func (s *SimpleSchema) ZeroListValue() ListObject {
	if s.list == nil {
		return nil
	}
	return s.list.DeepCopyObject().(ListObject)
}

func isNil(v any) bool {
	if v == nil {
		return true
	}
	value := reflect.ValueOf(v)
	return value.Kind() == reflect.Pointer && value.IsNil()
}
