// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// Document returns the fields that an author has set in a typed object, as the content of an apply configuration. The
// Go type decides what counts as set:
//
//   - A pointer that is not nil is set, also if it points to a zero value: replicas of 0, a boolean that is false, an
//     empty selector.
//   - A number, string or boolean that is not a pointer is set unless it is the zero value.
//   - A struct that is not a pointer is set if one of its fields is.
//   - A list or map is set unless it is nil, or empty with the JSON option omitempty.
//
// The content of an unstructured object is returned as it is, without nulls. Fields that the API server sets, and the
// status, are left out. The result shares nothing with obj.
func Document(obj runtime.Object) (map[string]any, error) {
	var content map[string]any
	if u, ok := obj.(runtime.Unstructured); ok {
		content = runtime.DeepCopyJSON(u.UnstructuredContent())
		dropNulls(content)
	} else {
		converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, err
		}
		content = converted
		dropUnset(reflect.ValueOf(obj), content)
	}
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, field := range serverFields {
			delete(metadata, field)
		}
	}
	return content, nil
}

// serverFields are the fields of the metadata that the API server sets.
var serverFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
	"resourceVersion", "selfLink", "uid",
}

func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			if below == nil {
				delete(v, key)
				continue
			}
			dropNulls(below)
		}
	case []any:
		for _, below := range v {
			dropNulls(below)
		}
	}
}

// dropUnset removes what the Go value does not set from its JSON form.
func dropUnset(value reflect.Value, content any) {
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		if value.IsNil() {
			return
		}
		value = value.Elem()
	}
	switch value.Kind() {
	case reflect.Struct:
		if fields, ok := content.(map[string]any); ok && !marshalsItself(value.Type()) {
			dropUnsetFields(value, fields)
		}
	case reflect.Slice, reflect.Array:
		if items, ok := content.([]any); ok && len(items) == value.Len() {
			for i, item := range items {
				dropUnset(value.Index(i), item)
			}
		}
	case reflect.Map:
		entries, ok := content.(map[string]any)
		if !ok || value.Type().Key().Kind() != reflect.String {
			return
		}
		for iter := value.MapRange(); iter.Next(); {
			dropUnset(iter.Value(), entries[iter.Key().String()])
		}
	}
}

func dropUnsetFields(value reflect.Value, fields map[string]any) {
	for _, f := range jsonFields(value.Type()) {
		field := value.Field(f.index)
		if f.inline {
			dropUnset(field, fields)
			continue
		}
		content, ok := fields[f.name]
		if !ok {
			continue
		}
		dropUnset(field, content)
		below, isMap := fields[f.name].(map[string]any)
		switch field.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
			if content == nil {
				delete(fields, f.name)
			}
		case reflect.Struct:
			if field.IsZero() || isMap && len(below) == 0 {
				delete(fields, f.name)
			}
		default:
			if field.IsZero() {
				delete(fields, f.name)
			}
		}
	}
}

type jsonField struct {
	index  int
	name   string
	inline bool
}

var knownFields sync.Map // reflect.Type to []jsonField

// jsonFields returns the fields of a struct that its JSON form has.
func jsonFields(t reflect.Type) []jsonField {
	if known, ok := knownFields.Load(t); ok {
		return known.([]jsonField)
	}
	fields := []jsonField{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		inline := name == "" && (field.Anonymous || strings.Contains(","+options+",", ",inline,"))
		switch {
		case name == "-" || !field.IsExported() && !field.Anonymous:
			continue
		case name == "":
			name = field.Name
		}
		fields = append(fields, jsonField{index: i, name: name, inline: inline})
	}
	knownFields.Store(t, fields)
	return fields
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// marshalsItself reports whether a type has a JSON form of its own, as quantities and times do.
func marshalsItself(t reflect.Type) bool {
	return t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}
