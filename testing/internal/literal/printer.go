// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// printer writes values as Go expressions.
type printer struct {
	packages

	// open are the values around the current one. They detect values that contain themselves.
	open map[visit]bool
	// left is how many more values may be printed: the text of values that share parts can be exponentially larger.
	left int
}

type visit struct {
	t       reflect.Type
	pointer uintptr
	length  int
}

// maxValues is how many values are printed. A text with more is of no use.
const maxValues = 5_000

func newPrinter(schemes []*runtime.Scheme) *printer {
	return &printer{
		packages: packages{schemes: schemes, imports: map[string]string{}}, open: map[visit]bool{}, left: maxValues,
	}
}

// position is the place of an expression. It determines how much of the type the expression must state.
type position int

const (
	// explicit is a place that does not imply the type, as a field of an interface type.
	explicit position = iota
	// inferred is a place that implies the type, as a field of that type.
	inferred
	// element is an element of a slice, an array or a map, where composite literals omit the type.
	element
)

func (p *printer) print(v reflect.Value, at position) string {
	if !v.IsValid() {
		return "nil"
	}
	t := v.Type()
	if t.Kind() == reflect.Interface {
		return p.print(v.Elem(), explicit)
	}
	if expr, ok := p.known(v); ok {
		return expr
	}
	if isScalar(t.Kind()) {
		return p.scalar(v, at)
	}
	if !p.writable(t) {
		return unwritable(t)
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Array:
		return p.composite(v, at)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		if !v.IsNil() {
			return unwritable(t)
		}
	}
	switch {
	case v.IsNil() && at == explicit:
		return p.conversion(t, "nil")
	case v.IsNil():
		return "nil"
	case isBytes(t):
		return p.bytes(v, at)
	default:
		return p.enter(v, at)
	}
}

func unwritable(t reflect.Type) string {
	return fmt.Sprintf("nil /* %s */", t)
}

// conversion converts an expression to a type, in parentheses where the syntax needs them.
func (p *printer) conversion(t reflect.Type, expr string) string {
	name := p.typeName(t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Chan:
		if t.Name() == "" {
			name = "(" + name + ")"
		}
	}
	return name + "(" + expr + ")"
}

// enter prints what a value refers to. It stops at values that contain themselves, and at too many values.
func (p *printer) enter(v reflect.Value, at position) string {
	ref := visit{t: v.Type(), pointer: v.Pointer()}
	if ref.t.Kind() == reflect.Slice {
		ref.length = v.Len()
	}
	if p.open[ref] {
		return "nil /* contains itself */"
	}
	if p.left--; p.left < 0 {
		return "nil /* too large */"
	}
	p.open[ref] = true
	defer delete(p.open, ref)
	if ref.t.Kind() == reflect.Pointer {
		return p.pointer(v, at)
	}
	return p.composite(v, at)
}

func (p *printer) pointer(v reflect.Value, at position) string {
	elem, named := v.Elem(), v.Type().Name() != ""
	var expr string
	switch _, known := p.known(elem); {
	case known, !isComposite(elem):
		expr = p.print(elem, explicit)
		if elem.Kind() == reflect.Interface {
			expr = p.conversion(elem.Type(), expr)
		}
		expr = "new(" + expr + ")"
	case at == element && !named:
		return p.composite(elem, element)
	default:
		expr = "&" + p.composite(elem, explicit)
	}
	if at == explicit && named {
		return p.conversion(v.Type(), expr)
	}
	return expr
}
