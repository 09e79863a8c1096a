// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/objects/nilcheck"
)

// SchemaScope is the scope of a kind.
type SchemaScope string

const (
	// NamespacedScope is the scope of kinds whose objects belong to a namespace.
	NamespacedScope SchemaScope = "Namespaced"
	// ClusterScope is the scope of kinds whose objects belong to no namespace.
	ClusterScope SchemaScope = "Cluster"
)

// Schema describes a kind in one version. Implementations must be safe for concurrent use.
type Schema interface {
	// Group returns the API group, empty for the core group.
	Group() string
	// Version returns the version within the group.
	Version() string
	// Kind returns the name of the kind.
	Kind() string
	// Plural returns the name of the kind in API paths.
	Plural() string
	// Scope returns whether objects belong to a namespace.
	Scope() SchemaScope
	// ZeroValue returns a new, empty object with its apiVersion and kind set.
	ZeroValue() Object
	// ZeroListValue returns a new, empty list with its apiVersion and kind set.
	ZeroListValue() ListObject
}

// NamespaceAll stands for all namespaces, where a namespace selects objects.
const NamespaceAll = ""

// SimpleSchema is a [Schema] with fixed values.
type SimpleSchema struct {
	gvk    schema.GroupVersionKind
	plural string
	scope  SchemaScope
	object Object
	list   ListObject
	fields []SelectableField
}

var _ Schema = (*SimpleSchema)(nil)

// SimpleSchemaOption changes a default of [NewSimpleSchema].
type SimpleSchemaOption func(*SimpleSchema)

// WithKind sets the name of the kind. Default: the kind that is set on zeroValue, otherwise the name of its Go type.
// Instances of [TypedSpecObject] and [TypedSpecStatusObject] need this option, because the name of a generic type is
// not a valid kind.
func WithKind(kind string) SimpleSchemaOption {
	return func(s *SimpleSchema) { s.gvk.Kind = kind }
}

// WithPlural sets the plural. Default: the English plural of the kind in lower case, as guessed by
// [meta.UnsafeGuessKindToResource].
func WithPlural(plural string) SimpleSchemaOption {
	return func(s *SimpleSchema) { s.plural = plural }
}

// WithScope sets the scope. Default: [NamespacedScope].
func WithScope(scope SchemaScope) SimpleSchemaOption {
	return func(s *SimpleSchema) { s.scope = scope }
}

// SelectableField is a field by which clients select objects of a kind on the API server.
type SelectableField struct {
	// FieldSelector is the path of the field, such as spec.color.
	FieldSelector string
	// FieldValueFunc returns the value of the field. It returns an error for objects of another kind.
	FieldValueFunc func(object Object) (string, error)
}

// WithSelectableFields sets the fields that [SimpleSchema.SelectableFields] returns. Nothing else uses them: the API
// server selects by the selectableFields of the CustomResourceDefinition.
func WithSelectableFields(fields []SelectableField) SimpleSchemaOption {
	return func(s *SimpleSchema) { s.fields = slices.Clone(fields) }
}

// NewSimpleSchema returns a schema for the kind whose objects have the Go type of zeroValue and whose lists have the Go
// type of zeroList. Both must be pointers. Use *unstructured.Unstructured for a kind without a Go type. The values are
// copied and may be reused.
//
// Mistakes are reported by [Kind.Validate], which is called when the kind is first used in set-up. Schemas can
// therefore be package variables.
func NewSimpleSchema(
	group, version string, zeroValue Object, zeroList ListObject, opts ...SimpleSchemaOption,
) *SimpleSchema {
	s := &SimpleSchema{scope: NamespacedScope}
	if !nilcheck.IsNilPointer(zeroValue) {
		s.object = zeroValue.DeepCopyObject().(Object)
		s.gvk.Kind = kindOf(zeroValue)
	}
	if !nilcheck.IsNilPointer(zeroList) {
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

// kindOf returns the kind that is set on the object, otherwise the name of its Go type.
func kindOf(obj Object) string {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	if _, ok := obj.(runtime.Unstructured); ok {
		return ""
	}
	name := reflect.TypeOf(obj).Elem().Name()
	if strings.Contains(name, "[") {
		return "" // the name of a generic type is not a valid kind
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

// SelectableFields returns the fields that [WithSelectableFields] has set.
func (s *SimpleSchema) SelectableFields() []SelectableField { return slices.Clone(s.fields) }

// ZeroValue implements Schema. It returns nil if [NewSimpleSchema] was called without a value.
func (s *SimpleSchema) ZeroValue() Object {
	if s.object == nil {
		return nil
	}
	return s.object.DeepCopyObject().(Object)
}

// ZeroListValue implements Schema. It returns nil if [NewSimpleSchema] was called without a value.
func (s *SimpleSchema) ZeroListValue() ListObject {
	if s.list == nil {
		return nil
	}
	return s.list.DeepCopyObject().(ListObject)
}

// SimpleSchemaGroup collects schemas of one group and version. It must not be changed by several goroutines at the same
// time.
type SimpleSchemaGroup struct {
	group, version string
	schemas        []Schema
}

// NewSimpleSchemaGroup returns a group without schemas.
func NewSimpleSchemaGroup(group, version string) *SimpleSchemaGroup {
	return &SimpleSchemaGroup{group: group, version: version}
}

// AddSchema adds the schema that [NewSimpleSchema] returns for the group, and returns it.
func (g *SimpleSchemaGroup) AddSchema(
	zeroValue Object, zeroList ListObject, opts ...SimpleSchemaOption,
) *SimpleSchema {
	s := NewSimpleSchema(g.group, g.version, zeroValue, zeroList, opts...)
	g.schemas = append(g.schemas, s)
	return s
}

// Schemas returns the schemas in the order in which they were added.
func (g *SimpleSchemaGroup) Schemas() []Schema { return slices.Clone(g.schemas) }
