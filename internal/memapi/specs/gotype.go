// SPDX-License-Identifier: Apache-2.0

package specs

import (
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// SchemaOf returns the schema of a Go type, as far as its JSON tags describe it: fields that are neither omitted if
// they are empty nor pointers are required. Recursive types end at a depth.
func SchemaOf(t reflect.Type) *apiextensionsv1.JSONSchemaProps {
	schema := schemaOf(t, maxDepth)
	return &schema
}

var knownTypes = map[reflect.Type]apiextensionsv1.JSONSchemaProps{
	reflect.TypeFor[metav1.Time]():        {Type: "string", Format: "date-time"},
	reflect.TypeFor[metav1.MicroTime]():   {Type: "string", Format: "date-time"},
	reflect.TypeFor[metav1.Duration]():    {Type: "string", Format: "duration"},
	reflect.TypeFor[intstr.IntOrString](): {XIntOrString: true},
	reflect.TypeFor[resource.Quantity](): {
		XIntOrString: true,
		Pattern: `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)` +
			`|(\.[0-9]+))))?$`,
	},
	reflect.TypeFor[runtime.RawExtension](): {Type: "object"},
	reflect.TypeFor[[]byte]():               {Type: "string", Format: "byte"},
}

func schemaOf(t reflect.Type, depth int) apiextensionsv1.JSONSchemaProps {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known, ok := knownTypes[t]; ok {
		return known
	}
	if depth == 0 {
		return apiextensionsv1.JSONSchemaProps{Type: "object"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	case reflect.String:
		return apiextensionsv1.JSONSchemaProps{Type: "string"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return apiextensionsv1.JSONSchemaProps{Type: "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: new(0.0)}
	case reflect.Float32, reflect.Float64:
		return apiextensionsv1.JSONSchemaProps{Type: "number"}
	case reflect.Slice, reflect.Array:
		items := schemaOf(t.Elem(), depth-1)
		return apiextensionsv1.JSONSchemaProps{
			Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items},
		}
	case reflect.Map:
		values := schemaOf(t.Elem(), depth-1)
		return apiextensionsv1.JSONSchemaProps{
			Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values},
		}
	case reflect.Struct:
		schema := apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{},
		}
		addFields(&schema, t, depth)
		return schema
	default:
		return apiextensionsv1.JSONSchemaProps{Type: "object"}
	}
}

// addFields adds the fields of a struct, and of the structs that it embeds.
func addFields(schema *apiextensionsv1.JSONSchemaProps, t reflect.Type, depth int) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
			continue
		case name == "" && field.Anonymous:
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if embedded.Kind() == reflect.Struct {
				addFields(schema, embedded, depth)
			}
			continue
		case name == "":
			name = field.Name
		}
		schema.Properties[name] = schemaOf(field.Type, depth-1)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") &&
			field.Type.Kind() != reflect.Pointer {
			schema.Required = append(schema.Required, name)
		}
	}
}
