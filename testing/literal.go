// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"go/format"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// literal returns v as a Go expression that can be pasted into a test: formatted as gofmt does, with the usual names
// for packages. Schemes tell the names of packages with API types that are named after nothing but their version.
//
// What cannot be written as an expression is nil, with a comment; unexported fields are left out.
func literal(v any, schemes ...*runtime.Scheme) string {
	return formatted(newPrinter(schemes).print(reflect.ValueOf(v), explicit))
}

// listField returns the field of a case, as in
//
//	ExpectCreates: []client.Object{
//		&corev1.ConfigMap{…},
//	},
//
// elem is the Go type of the elements.
func listField(name, elem string, items []any, schemes ...*runtime.Scheme) string {
	p := newPrinter(schemes)
	entries := make([]string, 0, len(items))
	for _, item := range items {
		v := reflect.ValueOf(item)
		if v.IsValid() && p.typeName(v.Type()) == elem {
			entries = append(entries, p.print(v, element))
		} else {
			entries = append(entries, p.print(v, explicit))
		}
	}
	return name + ": " + formatted("[]"+elem+bracesOnLines(entries)) + ","
}

// formatted returns the expression as gofmt formats it.
func formatted(expr string) string {
	const assign = "_ = "
	source, err := format.Source([]byte(assign + expr))
	if err != nil {
		return expr // better than nothing, in a text that is about another failure
	}
	return strings.TrimPrefix(string(source), assign)
}

// lineWidth is the length up to which an expression is kept on one line.
const lineWidth = 80

func fitsLine(expr string) bool { return len(expr) <= lineWidth && !strings.Contains(expr, "\n") }

// braces encloses the elements of a composite literal.
func braces(typeName string, elements []string) string {
	if line := typeName + "{" + strings.Join(elements, ", ") + "}"; fitsLine(line) {
		return line
	}
	return typeName + bracesOnLines(elements)
}

func bracesOnLines(elements []string) string {
	if len(elements) == 0 {
		return "{}"
	}
	return "{\n" + strings.Join(elements, ",\n") + ",\n}"
}

// call encloses the arguments of a function. The only one remains beside its parenthesis.
func call(name string, arguments []string) string {
	line := name + "(" + strings.Join(arguments, ", ") + ")"
	if fitsLine(line) || len(arguments) == 1 {
		return line
	}
	return name + "(\n" + strings.Join(arguments, ",\n") + ",\n)"
}
