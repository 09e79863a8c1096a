// SPDX-License-Identifier: Apache-2.0

package specs

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Property is a part of the desired state that users can change on its own.
type Property struct {
	Path Path
	// Context are the changes that the property requires first, because its parent is not set. Empty for most properties.
	Context []Change
	// Values are the values to try, the simplest first. They differ from the present one.
	Values []Value
}

// The limits of the walk through a schema.
const (
	maxDepth      = 12
	maxProperties = 400
)

// Properties lists the properties of an object that has the schema and the content, in the order of their paths, with
// values for each. It ignores metadata and status. left are the properties that have no values, because the schema does
// not describe their content or is too large.
func Properties(
	schema *apiextensionsv1.JSONSchemaProps, content map[string]any,
) (properties []Property, left []string) {
	g := &generator{}
	for _, name := range sortedKeys(schema.Properties) {
		switch name {
		case "apiVersion", "kind", "metadata", "status":
			continue
		}
		child := schema.Properties[name]
		value, present := content[name]
		// Whether a spec is required or not, an object without one is rarely meant.
		g.visit(node{path: Path{name}, schema: &child, content: value, present: present, required: true})
	}
	return g.properties, g.left
}

type generator struct {
	properties []Property
	left       []string
}

// node is a place in a schema, with the present content.
type node struct {
	path     Path
	schema   *apiextensionsv1.JSONSchemaProps
	content  any
	present  bool
	required bool
	context  []Change
}

func (n *node) name() string {
	for _, element := range slices.Backward(n.path) {
		if _, isIndex := indexOf(element); !isIndex {
			return element
		}
	}
	return ""
}

// add adds a property with those values that differ from the present one and from each other.
func (g *generator) add(n node, values ...Value) {
	seen := map[string]bool{"unset": !n.present}
	if n.present {
		seen[Value{Content: n.content}.String()] = true
	}
	var kept []Value
	for _, v := range values {
		if text := v.String(); !seen[text] {
			seen[text] = true
			kept = append(kept, v)
		}
	}
	if len(kept) > 0 {
		g.properties = append(g.properties, Property{Path: n.path, Context: n.context, Values: kept})
	}
}

// visit adds the properties at a place.
func (g *generator) visit(n node) {
	if len(n.path) > maxDepth || len(g.properties) >= maxProperties {
		g.left = append(g.left, n.path.String())
		return
	}
	switch kindOf(n.schema) {
	case objectKind:
		g.visitObject(n)
	case mapKind:
		g.visitMap(n)
	case listKind:
		g.visitList(n)
	case opaqueKind:
		g.left = append(g.left, n.path.String())
	default:
		values := scalarValues(n.schema, n.name(), n.content)
		if n.present && !n.required {
			values = append(values, Value{Unset: true})
		}
		g.add(n, values...)
	}
}

func (g *generator) visitObject(n node) {
	content, ok := n.content.(map[string]any)
	switch {
	case !ok:
		sample := sampleOf(n.schema, n.name(), 0)
		if content, ok = sample.(map[string]any); !ok {
			return
		}
		if !n.required {
			g.add(n, Value{Content: sample})
		}
		n.context = append(slices.Clip(n.context), Change{n.path, Value{Content: sample}})
	case !n.required:
		g.add(n, Value{Unset: true})
	}
	for _, name := range fieldsOf(n.schema) {
		child := n.schema.Properties[name]
		value, present := content[name]
		g.visit(node{
			path: n.path.with(name), schema: &child, content: value, present: present,
			required: slices.Contains(n.schema.Required, name), context: n.context,
		})
	}
}

// visitMap changes, removes and adds keys.
func (g *generator) visitMap(n node) {
	item := n.schema.AdditionalProperties.Schema
	content, _ := n.content.(map[string]any)
	first, second := newKeys(n.name())
	if n.present && !n.required {
		g.add(n, Value{Unset: true})
	}
	if len(content) == 0 {
		g.add(
			n, Value{Content: map[string]any{first: sampleOf(item, n.name(), 0)}},
			Value{Content: map[string]any{first: sampleOf(item, n.name(), 1), second: sampleOf(item, n.name(), 2)}},
		)
		return
	}
	for _, key := range sortedKeys(content) {
		g.visit(node{
			path: n.path.with(key), schema: item, content: content[key], present: true, context: n.context,
		})
	}
	for _, key := range []string{first, second} {
		if _, taken := content[key]; !taken {
			g.add(
				node{path: n.path.with(key), context: n.context},
				Value{Content: sampleOf(item, n.name(), 0)}, Value{Content: sampleOf(item, n.name(), 1)},
			)
			return
		}
	}
}

// newKeys returns keys for a map: names of resources, or any others.
func newKeys(name string) (string, string) {
	if name == "limits" || name == "requests" {
		return "memory", "cpu"
	}
	return "added", "another"
}

// visitList adds, removes and reorders items, and changes the first one.
func (g *generator) visitList(n node) {
	item := n.schema.Items.Schema
	content, _ := n.content.([]any)
	var values []Value
	offer := func(items ...any) {
		if within(int64(len(items)), n.schema.MinItems, n.schema.MaxItems) {
			values = append(values, Value{Content: runtime.DeepCopyJSONValue(items)})
		}
	}
	sample := func(i int) any { return sampleOf(item, n.name(), i) }
	if len(content) == 0 {
		offer(sample(0))
		offer(sample(0), sample(1))
		offer(sample(1), sample(0))
		g.add(n, values...)
		content = []any{sample(0)}
		n.context = append(slices.Clip(n.context), Change{n.path, Value{Content: content}})
	} else {
		offer(slices.Concat(content, []any{unusedSample(item, n.name(), content)})...)
		offer(slices.Concat([]any{unusedSample(item, n.name(), content)}, content)...)
		offer(content[:len(content)-1]...)
		if len(content) > 1 {
			offer(content[1:]...)
			reversed := slices.Clone(content)
			slices.Reverse(reversed)
			offer(reversed...)
		}
		if !n.required {
			values = append(values, Value{Unset: true})
		}
		g.add(n, values...)
	}
	// An item that is a scalar is replaced, which is like a removal and an addition.
	g.visit(node{
		path: n.path.with("[0]"), schema: item, content: content[0], present: true, required: true, context: n.context,
	})
}

// within reports whether a number is between two bounds, which may be nil.
func within(n int64, least, most *int64) bool {
	return (least == nil || n >= *least) && (most == nil || n <= *most)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
