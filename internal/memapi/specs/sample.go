// SPDX-License-Identifier: Apache-2.0

package specs

import (
	"bytes"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// sampleOf returns small content that matches a schema: the required fields, or all scalar ones if none are. Samples
// with other numbers differ where the schema permits it.
func sampleOf(schema *apiextensionsv1.JSONSchemaProps, name string, number int) any {
	return sampleWithin(schema, name, number, maxDepth)
}

func sampleWithin(schema *apiextensionsv1.JSONSchemaProps, name string, number, depth int) any {
	if value, ok := defaultOf(schema); ok && number == 0 {
		return value
	}
	kind := kindOf(schema)
	if depth == 0 {
		kind = opaqueKind
	}
	switch kind {
	case objectKind:
		content := map[string]any{}
		for _, field := range sampleFields(schema) {
			child := schema.Properties[field]
			content[field] = sampleWithin(&child, field, number, depth-1)
		}
		return content
	case mapKind:
		key, _ := newKeys(name)
		return map[string]any{key: sampleWithin(schema.AdditionalProperties.Schema, name, number, depth-1)}
	case listKind:
		size := int64(1)
		if schema.MinItems != nil {
			size = max(size, *schema.MinItems)
		}
		var items []any
		for i := range min(size, 10) {
			items = append(items, sampleWithin(schema.Items.Schema, name, number+int(i), depth-1))
		}
		return items
	case scalarKind:
		return scalarSample(schema, name, number)
	default:
		return map[string]any{}
	}
}

// sampleFields lists the fields of a sample of an object.
func sampleFields(schema *apiextensionsv1.JSONSchemaProps) []string {
	var fields []string
	s := shapeOf(schema)
	for _, name := range sortedKeys(schema.Properties) {
		child := schema.Properties[name]
		switch {
		case slices.Contains(schema.Required, name), s != nil && slices.Contains(s.sample, name):
			fields = append(fields, name)
		case s == nil && len(schema.Required) == 0 && kindOf(&child) == scalarKind:
			fields = append(fields, name)
		}
	}
	return fields
}

// unusedSample returns a sample that is not in a list, and has no field in common with its items if it is an object.
func unusedSample(schema *apiextensionsv1.JSONSchemaProps, name string, content []any) any {
	first := len(content) + 1
	for number := first; number < first+20; number++ {
		sample := sampleOf(schema, name, number)
		if !slices.ContainsFunc(content, func(item any) bool { return clashes(item, sample) }) {
			return sample
		}
	}
	return sampleOf(schema, name, first)
}

func clashes(item, sample any) bool {
	one, isObject := item.(map[string]any)
	other, _ := sample.(map[string]any)
	if !isObject {
		return bytes.Equal(encode(item), encode(sample))
	}
	for _, key := range []string{"name", "key", "port", "containerPort", "host", "type"} {
		if value, ok := one[key]; ok && bytes.Equal(encode(value), encode(other[key])) {
			return true
		}
	}
	return bytes.Equal(encode(item), encode(sample))
}

func encode(value any) []byte { return []byte(Value{Content: value}.String()) }

// defaultOf returns the default in a schema.
func defaultOf(schema *apiextensionsv1.JSONSchemaProps) (any, bool) {
	if schema.Default == nil {
		return nil, false
	}
	var value any
	if err := utiljson.Unmarshal(schema.Default.Raw, &value); err != nil || value == nil {
		return nil, false
	}
	return runtime.DeepCopyJSONValue(value), true
}
