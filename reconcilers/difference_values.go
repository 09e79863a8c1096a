// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// dereferenced returns what a pointer points to, or an interface holds. It is not valid when that is nil.
func dereferenced(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// isUnset is true for what is missing, zero or empty.
func isUnset(v reflect.Value) bool {
	if !v.IsValid() || v.IsZero() {
		return true
	}
	return (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
}

// mapEntry is what two maps have for a key. What is not valid is missing.
type mapEntry struct {
	key           string
	before, after reflect.Value
}

func sortedEntries(before, after reflect.Value) []mapEntry {
	var entries []mapEntry
	for _, key := range before.MapKeys() {
		entries = append(entries, mapEntry{key: fmt.Sprint(key), before: before.MapIndex(key), after: after.MapIndex(key)})
	}
	for _, key := range after.MapKeys() {
		if !before.MapIndex(key).IsValid() {
			entries = append(entries, mapEntry{key: fmt.Sprint(key), after: after.MapIndex(key)})
		}
	}
	slices.SortFunc(entries, func(a, b mapEntry) int { return cmp.Compare(a.key, b.key) })
	return entries
}

// itemAt returns an item of a list. It is not valid when the list is shorter.
func itemAt(list reflect.Value, i int) reflect.Value {
	if i >= list.Len() {
		return reflect.Value{}
	}
	return list.Index(i)
}

// itemNames returns what tells the items of a list apart, and false when that is not known.
func itemNames(list reflect.Value) (names []string, ok bool) {
	seen := sets.New("")
	for i := range list.Len() {
		item := list.Index(i)
		name := textField(item, "Name", "name")
		if _, isCondition := conditionFields(item); isCondition {
			name = textField(item, "Type", "type")
		}
		if seen.Has(name) {
			return nil, false
		}
		seen.Insert(name)
		names = append(names, name)
	}
	return names, true
}

// hasConditions reports whether a list has conditions in it.
func hasConditions(list reflect.Value) bool {
	if list.Len() == 0 {
		return false
	}
	_, ok := conditionFields(list.Index(0))
	return ok
}

// conditionFields returns status and reason of an item that is a condition: what has a type, a status and a reason.
func conditionFields(item reflect.Value) (fields map[string]string, ok bool) {
	item = dereferenced(item)
	if !item.IsValid() {
		return nil, false
	}
	switch item.Kind() {
	case reflect.Struct:
		for _, name := range []string{"Type", "Status", "Reason"} {
			if field, ok := item.Type().FieldByName(name); !ok || field.Type.Kind() != reflect.String {
				return nil, false
			}
		}
	case reflect.Map:
		if textField(item, "", "type") == "" || textField(item, "", "status") == "" || textField(item, "", "reason") == "" {
			return nil, false
		}
	default:
		return nil, false
	}
	return map[string]string{
		"status": textField(item, "Status", "status"), "reason": textField(item, "Reason", "reason"),
	}, true
}

// textField returns a field of an item, by its name in Go or as a key of unstructured content. It is empty where there
// is none that holds text.
func textField(item reflect.Value, name, key string) string {
	item = dereferenced(item)
	if !item.IsValid() {
		return ""
	}
	var field reflect.Value
	switch {
	case item.Kind() == reflect.Struct:
		if named, ok := item.Type().FieldByName(name); ok {
			field, _ = item.FieldByIndexErr(named.Index)
		}
	case item.Kind() == reflect.Map && item.Type().Key().Kind() == reflect.String:
		field = item.MapIndex(reflect.ValueOf(key).Convert(item.Type().Key()))
	}
	if field = dereferenced(field); !field.IsValid() || field.Kind() != reflect.String {
		return ""
	}
	return field.String()
}
