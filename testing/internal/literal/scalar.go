// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"math"
	"reflect"
	"strconv"
	"strings"
)

func isScalar(kind reflect.Kind) bool {
	return kind >= reflect.Bool && kind <= reflect.Complex128 || kind == reflect.String
}

// scalar prints a constant. It adds a conversion if the type is neither inferred nor the default type of the constant.
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
	// The result of a function has a type, unlike a constant.
	if t != reflect.TypeFor[float64]() {
		return p.conversion(t, expr)
	}
	return expr
}

// quote prints a string in the form that is easiest to read: JSON in backquotes, and one literal for each line of a
// text. No literal spans lines: tests indent what they print, and the indentation would become part of the string.
func quote(s string) string {
	if strconv.CanBackquote(s) && strings.ContainsAny(s, `"\`) {
		return "`" + s + "`"
	}
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, strconv.Quote(line))
	}
	if len(lines) < 2 {
		return strconv.Quote(s)
	}
	return strings.Join(lines, " +\n")
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem() == reflect.TypeFor[byte]()
}

// bytes prints bytes as a conversion of a string: to []byte if the type is inferred, else to the type.
func (p *printer) bytes(v reflect.Value, at position) string {
	name := "[]byte"
	if at == explicit {
		name = p.typeName(v.Type())
	}
	return name + "(" + quote(string(v.Bytes())) + ")"
}
