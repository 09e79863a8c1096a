// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/internal/testkit/fixture"
)

// Types of values in tests, in addition to types of APIs.
type (
	Text                      string
	Pointer                   *int
	Bytes                     []byte
	Pair[K comparable, V any] struct {
		Key   K
		Value V
	}
	Node struct {
		Embedded
		*Text
		Name     string
		Any      any
		Function func()
		Channel  chan int
		Next     *Node
		Nodes    []*Node
		ByName   map[string]*Node
		hidden   int
	}
	Embedded struct{ Embedded int }
)

// WithHidden returns the node with a value in its unexported field.
func WithHidden(node Node) *Node {
	node.hidden = 1
	return &node
}

// WithImports returns the literal of a value, and the paths of the packages that it needs by name.
func WithImports(v any) (string, map[string]string) {
	p := newPrinter([]*runtime.Scheme{fixture.NewScheme()})
	expr := formatted(p.print(reflect.ValueOf(v), explicit))
	return expr, p.imports
}
