// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

func isScalar(kind reflect.Kind) bool {
	return kind >= reflect.Bool && kind <= reflect.Complex128 || kind == reflect.String
}

// scalar prints a constant. It needs a conversion where its type cannot be inferred and is not the one that the
// constant has by default.
func (p *printer) scalar(v reflect.Value, at position) string {
	if name, ok := p.constant(v); ok {
		return name
	}
	t := v.Type()
	var expr string
	defaultType := false
	switch {
	case t.Kind() == reflect.Bool:
		expr, defaultType = strconv.FormatBool(v.Bool()), t == reflect.TypeFor[bool]()
	case t.Kind() == reflect.String:
		expr, defaultType = quote(v.String()), t == reflect.TypeFor[string]()
	case v.CanInt():
		expr, defaultType = strconv.FormatInt(v.Int(), 10), t == reflect.TypeFor[int]()
	case v.CanUint():
		expr = strconv.FormatUint(v.Uint(), 10)
	case v.CanFloat():
		return p.float(v, at)
	default:
		complexType := t == reflect.TypeFor[complex128]()
		expr, defaultType = strconv.FormatComplex(v.Complex(), 'g', -1, t.Bits()), complexType
	}
	if at == explicit && !defaultType {
		return p.conversion(t, expr)
	}
	return expr
}

func (p *printer) float(v reflect.Value, at position) string {
	t, f := v.Type(), v.Float()
	var expr string
	switch {
	case math.IsNaN(f):
		expr = p.qualified("math", "math", "NaN()")
	case math.IsInf(f, 1):
		expr = p.qualified("math", "math", "Inf(1)")
	case math.IsInf(f, -1):
		expr = p.qualified("math", "math", "Inf(-1)")
	default:
		expr = strconv.FormatFloat(f, 'g', -1, t.Bits())
		if !strings.ContainsAny(expr, ".e") {
			expr += ".0" // or it would be an int
		}
		if at == explicit && t != reflect.TypeFor[float64]() {
			return p.conversion(t, expr)
		}
		return expr
	}
	// These are not constants: they have a type.
	if t != reflect.TypeFor[float64]() {
		return p.conversion(t, expr)
	}
	return expr
}

// quote prints a string in the form that is easiest to read: JSON as it is, texts of many lines in as many literals. No
// literal spans lines: tests indent what they print, and the indentation would become part of the string.
func quote(s string) string {
	if strconv.CanBackquote(s) && strings.ContainsAny(s, `"\`) {
		return "`" + s + "`"
	}
	lines := slices.Collect(strings.Lines(s))
	if len(lines) < 2 {
		return strconv.Quote(s)
	}
	return strings.Join(each(lines, strconv.Quote), " +\n")
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem() == reflect.TypeFor[byte]()
}

// bytes prints text as text. Where the type is known any conversion to bytes will do, else it is the type that is
// converted to.
func (p *printer) bytes(v reflect.Value, at position) string {
	name := "[]byte"
	if at == explicit {
		name = p.typeName(v.Type())
	}
	return name + "(" + quote(string(v.Bytes())) + ")"
}
