// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"reflect"
	"strings"
	"sync"
)

// wireType is a type and the encoding of its values.
type wireType struct {
	reflect.Type
	protobuf bool
	// object is set for a top-level object, whose type is not encoded but known.
	object bool
}

func (t wireType) part(of reflect.Type) wireType {
	return wireType{Type: of, protobuf: t.protobuf}
}

// plan changes values of a type to the form they have after encoding and decoding.
type plan struct {
	// run changes a value that can be set, and reports whether it did. Nil if no value changes.
	run func(reflect.Value) bool
	// null reports whether a value is encoded as null. A pointer to it is then decoded as nil. Nil if no value is.
	null func(reflect.Value) bool
	// whole reports whether the value that contains such a value must be encoded as JSON, too.
	whole bool
	ready bool
}

func (p *plan) apply(v reflect.Value) bool {
	return p.run != nil && p.run(v)
}

// needed reports whether values may change. It is also true for a recursive type whose plan is incomplete.
func (p *plan) needed() bool {
	return p.run != nil || !p.ready
}

var plans sync.Map // of wireType to *plan

func planFor(t wireType) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := planner{}.plan(t)
	plans.Store(t, p)
	return p
}

// planner has the plans of all types within a type.
type planner map[wireType]*plan

func (c planner) plan(t wireType) *plan {
	if p, ok := c[t]; ok {
		return p
	}
	p := &plan{}
	c[t] = p
	*p = c.make(t)
	p.ready = true
	return p
}

func (c planner) make(t wireType) plan {
	if p, ok := formOf(t); ok {
		return p
	}
	switch t.Kind() {
	case reflect.Struct:
		return c.structs(t)
	case reflect.Pointer:
		return c.pointers(t)
	case reflect.Slice:
		return c.slices(t)
	case reflect.Map:
		return c.maps(t)
	case reflect.Array:
		if c.plan(t.part(t.Elem())).needed() {
			return throughJSON(t.Type)
		}
	case reflect.Interface:
		return throughJSON(t.Type)
	}
	return plan{}
}

func (c planner) structs(t wireType) plan {
	type step struct {
		index int
		run   func(reflect.Value) bool
	}
	var steps []step
	names := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inline := f.Anonymous && name == ""
		if inline && f.Type.Kind() == reflect.Pointer || !claim(names, f, name, inline) {
			// the JSON package decides between fields with the same name, and whether an embedded pointer is nil afterwards
			return throughJSON(t.Type)
		}
		switch {
		case !f.IsExported() && !inline:
			if f.Type.Size() > 0 {
				return throughJSON(t.Type)
			}
		case t.object && f.Name == "TypeMeta":
		case tag == "-":
			steps = append(steps, step{i, clearValue})
		default:
			if run := c.field(t.part(f.Type), options); run != nil {
				steps = append(steps, step{i, run})
			}
		}
	}
	if len(steps) == 0 {
		return plan{}
	}
	return plan{run: func(v reflect.Value) bool {
		changed := false
		for _, s := range steps {
			if s.run(v.Field(s.index)) {
				changed = true
			}
		}
		return changed
	}}
}

// claim records the JSON names of a field, and reports whether all of them are new.
func claim(names map[string]bool, f reflect.StructField, name string, inline bool) bool {
	if inline && f.Type.Kind() == reflect.Struct {
		for i := range f.Type.NumField() {
			inner := f.Type.Field(i)
			innerName, _, _ := strings.Cut(inner.Tag.Get("json"), ",")
			if !claim(names, inner, innerName, inner.Anonymous && innerName == "") {
				return false
			}
		}
		return true
	}
	if !f.IsExported() || name == "-" {
		return true
	}
	if name == "" {
		name = f.Name
	}
	if names[name] {
		return false
	}
	names[name] = true
	return true
}

type zeroer interface{ IsZero() bool }

// field returns the plan for a field. Its options determine whether it is omitted when empty.
func (c planner) field(t wireType, options string) func(reflect.Value) bool {
	p := c.plan(t)
	if strings.Contains(options, "omitzero") && !t.protobuf {
		if reflect.PointerTo(t.Type).Implements(reflect.TypeFor[zeroer]()) {
			return func(v reflect.Value) bool {
				if v.Addr().Interface().(zeroer).IsZero() {
					return clearValue(v)
				}
				return p.apply(v)
			}
		}
	}
	if kind := t.Kind(); strings.Contains(options, "omitempty") && !t.protobuf &&
		(kind == reflect.Slice || kind == reflect.Map) {
		return func(v reflect.Value) bool {
			if v.Len() == 0 {
				return clearValue(v)
			}
			return p.apply(v)
		}
	}
	if !p.needed() {
		return nil
	}
	return p.apply
}

// clearValue sets a value to its zero value.
func clearValue(v reflect.Value) bool {
	if v.IsZero() {
		return false
	}
	v.SetZero()
	return true
}

func (c planner) pointers(t wireType) plan {
	p := c.plan(t.part(t.Elem()))
	if p.whole {
		return throughJSON(t.Type)
	}
	if !p.needed() {
		return plan{}
	}
	return plan{run: func(v reflect.Value) bool {
		switch {
		case v.IsNil():
			return false
		case p.null != nil && p.null(v.Elem()):
			return clearValue(v)
		}
		return p.apply(v.Elem())
	}}
}

func (c planner) slices(t wireType) plan {
	if t.Elem().Kind() == reflect.Uint8 {
		return plan{}
	}
	p := c.plan(t.part(t.Elem()))
	if p.whole {
		return throughJSON(t.Type)
	}
	if !p.needed() && !t.protobuf {
		return plan{}
	}
	return plan{run: func(v reflect.Value) bool {
		if v.Len() == 0 {
			return t.protobuf && clearValue(v)
		}
		changed := false
		if p.run != nil {
			for i := range v.Len() {
				if p.run(v.Index(i)) {
					changed = true
				}
			}
		}
		return changed
	}}
}

func (c planner) maps(t wireType) plan {
	p := c.plan(t.part(t.Elem()))
	if p.whole || t.Key().Kind() != reflect.String || marshals(t.Key()) {
		return throughJSON(t.Type)
	}
	run := p.run
	if !p.ready {
		run = p.apply
	}
	if t.protobuf && t.Elem().Kind() == reflect.Slice && t.Elem().Elem().Kind() == reflect.Uint8 {
		run = func(v reflect.Value) bool {
			if v.IsNil() {
				v.SetBytes([]byte{})
				return true
			}
			return false
		}
	}
	if run == nil && !t.protobuf {
		return plan{}
	}
	return plan{run: func(v reflect.Value) bool {
		if v.Len() == 0 {
			return t.protobuf && clearValue(v)
		}
		if run == nil {
			return false
		}
		changed := false
		entry := reflect.New(t.Elem()).Elem()
		for i := v.MapRange(); i.Next(); {
			if entry.SetIterValue(i); run(entry) {
				v.SetMapIndex(i.Key(), entry)
				changed = true
			}
		}
		return changed
	}}
}
