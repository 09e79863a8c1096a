// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/internal/memapi/kinds"
)

// models are the schemas of a document by name.
type models map[string]any

const reference = "#/components/schemas/"

// addKind adds the schema of a kind: the schema of its definition, or of its Go type.
func (m models) addKind(scheme *runtime.Scheme, kind *kinds.Kind) {
	if structural := kind.Schema(); structural != nil {
		m[modelName(kind)] = m.custom(kind)
		return
	}
	goType := scheme.AllKnownTypes()[kind.GroupVersionKind]
	if goType == nil {
		return
	}
	m.addType(goType)
	model, _ := m[typeName(goType)].(map[string]any)
	model["x-kubernetes-group-version-kind"] = []any{groupVersionKind(kind)}
	if name := modelName(kind); name != typeName(goType) {
		m[name] = model
	}
}

// custom returns the schema of a custom kind.
func (m models) custom(kind *kinds.Kind) map[string]any {
	model := map[string]any{}
	encoded, err := json.Marshal(kind.Schema().ToKubeOpenAPI())
	if err == nil {
		err = json.Unmarshal(encoded, &model)
	}
	if err != nil {
		return map[string]any{"type": "object"}
	}
	properties, _ := model["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
		model["properties"] = properties
	}
	objectMeta := reflect.TypeFor[metav1.ObjectMeta]()
	m.addType(objectMeta)
	doc := metav1.TypeMeta{}.SwaggerDoc()
	properties["apiVersion"] = map[string]any{"type": "string", "description": doc["apiVersion"]}
	properties["kind"] = map[string]any{"type": "string", "description": doc["kind"]}
	properties["metadata"] = refTo(objectMeta, "Standard object's metadata.")
	model["x-kubernetes-group-version-kind"] = []any{groupVersionKind(kind)}
	return model
}

// modelName returns the name of the schema of a kind.
func modelName(kind *kinds.Kind) string {
	if kind.Custom {
		parts := strings.Split(kind.Group, ".")
		slices.Reverse(parts)
		return strings.Join(append(parts, kind.Version, kind.Kind), ".")
	}
	group := strings.Split(kind.Group, ".")[0]
	if group == "" {
		group = "core"
	}
	return fmt.Sprintf("io.k8s.api.%s.%s.%s", group, kind.Version, kind.Kind)
}

// typeName returns the name of the schema of a Go type.
func typeName(t reflect.Type) string {
	if named, ok := reflect.Zero(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	return strings.ReplaceAll(t.PkgPath(), "/", ".") + "." + t.Name()
}

func refTo(t reflect.Type, description string) map[string]any {
	return map[string]any{"allOf": []any{map[string]any{"$ref": reference + typeName(t)}}, "description": description}
}

// addType adds the schema of a struct, and of those it contains.
func (m models) addType(t reflect.Type) {
	name := typeName(t)
	if m[name] != nil {
		return
	}
	doc := docOf(t)
	model := map[string]any{"type": "object", "description": doc[""]}
	m[name] = model // before its fields, which may refer to it
	if own := formOf(t); own != nil {
		own["description"] = doc[""]
		m[name] = own
		return
	}
	properties, required := map[string]any{}, []any{}
	m.addFields(t, doc, properties, &required)
	model["properties"] = properties
	if len(required) > 0 {
		model["required"] = required
	}
}

func docOf(t reflect.Type) map[string]string {
	if documented, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return documented.SwaggerDoc()
	}
	return nil
}

func (m models) addFields(t reflect.Type, doc map[string]string, properties map[string]any, required *[]any) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			m.addFields(inner, docOf(inner), properties, required)
			continue
		}
		if name == "" || name == "-" || !field.IsExported() {
			continue
		}
		property := m.schemaOf(field.Type, doc[name])
		if strategy := field.Tag.Get("patchStrategy"); strategy != "" {
			property["x-kubernetes-patch-strategy"] = strategy
		}
		if key := field.Tag.Get("patchMergeKey"); key != "" {
			property["x-kubernetes-patch-merge-key"] = key
		}
		properties[name] = property
		if !strings.Contains(options, "omit") && field.Type.Kind() != reflect.Pointer && name != "metadata" {
			*required = append(*required, name)
		}
	}
}

// schemaOf returns the schema of a field.
func (m models) schemaOf(t reflect.Type, description string) map[string]any {
	found := map[string]any{}
	switch t.Kind() {
	case reflect.Pointer:
		return m.schemaOf(t.Elem(), description)
	case reflect.Struct:
		m.addType(t)
		return refTo(t, description)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			found["type"], found["format"] = "string", "byte"
		} else {
			found["type"], found["items"] = "array", m.schemaOf(t.Elem(), "")
		}
	case reflect.Map:
		found["type"], found["additionalProperties"] = "object", m.schemaOf(t.Elem(), "")
	case reflect.Bool:
		found["type"] = "boolean"
	case reflect.Int32, reflect.Uint32:
		found["type"], found["format"] = "integer", "int32"
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint:
		found["type"], found["format"] = "integer", "int64"
	case reflect.Float32, reflect.Float64:
		found["type"], found["format"] = "number", "double"
	case reflect.String:
		found["type"] = "string"
	}
	if description != "" {
		found["description"] = description
	}
	return found
}

// formOf returns the schema of a type that is not encoded as its fields, or nil.
func formOf(t reflect.Type) map[string]any {
	value := reflect.Zero(t).Interface()
	typed, ok := value.(interface{ OpenAPISchemaType() []string })
	if !ok {
		return nil
	}
	form := map[string]any{}
	if kinds := typed.OpenAPISchemaType(); len(kinds) > 0 {
		form["type"] = kinds[0]
	}
	if formatted, ok := value.(interface{ OpenAPISchemaFormat() string }); ok && formatted.OpenAPISchemaFormat() != "" {
		form["format"] = formatted.OpenAPISchemaFormat()
	}
	return form
}
