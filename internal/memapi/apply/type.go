// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// Type is the type of a value in the schema of a kind. The zero Type is the type of a value that the schema does not
// declare. Its lists are atomic.
type Type struct {
	schema *smdschema.Schema
	atom   smdschema.Atom
}

// TypeOf returns the type of the objects of a kind, or the zero Type if the kind is not served. It is cheap after the
// first call for a kind.
func (a *Applier) TypeOf(gvk schema.GroupVersionKind) Type {
	a.mu.RLock()
	t, ok := a.types[gvk]
	a.mu.RUnlock()
	if ok {
		return t
	}
	t = a.typeOf(gvk)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.types[gvk] = t
	return t
}

func (a *Applier) typeOf(gvk schema.GroupVersionKind) Type {
	k, ok := a.registry.For(gvk)
	if !ok {
		return Type{}
	}
	fields, err := a.manager(k, "")
	if err != nil {
		return Type{}
	}
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(gvk)
	value, err := fields.converter.ObjectToTyped(empty)
	if err != nil {
		return Type{}
	}
	return resolve(value.Schema(), value.TypeRef())
}

func resolve(s *smdschema.Schema, ref smdschema.TypeRef) Type {
	atom, ok := s.Resolve(ref)
	if !ok {
		return Type{}
	}
	return Type{s, atom}
}

// Field returns the type of a field of an object, or of an entry of a map.
func (t Type) Field(name string) Type {
	if t.atom.Map == nil {
		return Type{}
	}
	if field, ok := t.atom.FindField(name); ok {
		return resolve(t.schema, field.Type)
	}
	return resolve(t.schema, t.atom.Map.ElementType)
}

// Item returns the type of the items of a list.
func (t Type) Item() Type {
	if t.atom.List == nil {
		return Type{}
	}
	return resolve(t.schema, t.atom.List.ElementType)
}

// Keys reports whether a list is a map or a set, where the order of the items does not matter. The keys are the fields
// that identify an item of a map. A set has none: its items are identified by their value.
func (t Type) Keys() (keys []string, associative bool) {
	if t.atom.List == nil || t.atom.List.ElementRelationship != smdschema.Associative {
		return nil, false
	}
	return t.atom.Keys, true
}
