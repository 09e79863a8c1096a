// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"go/format"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Of returns v as a Go expression that can be pasted into a test. The schemes provide the names of packages with API
// types whose paths contain only a version, and know which Go types stand for one kind.
func Of(v any, schemes ...*runtime.Scheme) string {
	return formatted(newPrinter(schemes).print(reflect.ValueOf(v), explicit))
}

// Field returns a field of a test case as Go code:
//
//	ExpectCreates: []client.Object{
//		&corev1.ConfigMap{…},
//	},
//
// elem is the Go type of the elements. Elements of other types state their type.
func Field(name, elem string, items []any, schemes ...*runtime.Scheme) string {
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
		return expr // the text is about another failure, which an unformatted expression still explains
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

// call encloses the arguments of a function. A single argument stays on the line of its parenthesis.
func call(name string, arguments []string) string {
	line := name + "(" + strings.Join(arguments, ", ") + ")"
	if fitsLine(line) || len(arguments) == 1 {
		return line
	}
	return name + "(\n" + strings.Join(arguments, ",\n") + ",\n)"
}
