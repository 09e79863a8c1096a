// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"trueup.dev/internal/objects/conditions"
)

// Shown returns the values to show beside the path: for a condition its messages if they differ, because the path has
// its status and reason.
func (d Difference) Shown() (before, after any) {
	if d.conditions == [2]Condition{} {
		return d.Before, d.After
	}
	was, is := d.conditions[0].Message, d.conditions[1].Message
	if was == is {
		return nil, nil
	}
	if was != "" {
		before = was
	}
	if is != "" {
		after = is
	}
	return before, after
}

// Text returns a value as JSON, cut to that number of bytes. It is "" if the value is missing, or no JSON.
func Text(value any, most int) string {
	if value == nil {
		return ""
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // people read it
	if err := encoder.Encode(value); err != nil {
		return ""
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if text == "null" { // an empty list or map
		return ""
	}
	return conditions.Cut(text, most)
}

// maxText limits the bytes of a value in a log line.
const maxText = 1024

// Lines returns the paths with the values, which may be secret, for logs.
func Lines(found []Difference) []string {
	lines := make([]string, len(found))
	for i, d := range found {
		lines[i] = d.Path
		before, after := d.Shown()
		if was, is := Text(before, maxText), Text(after, maxText); was != "" || is != "" {
			lines[i] += ": " + cmp.Or(was, "unset") + " → " + cmp.Or(is, "unset")
		}
	}
	return lines
}

// dereferenced returns the value of a pointer or an interface. The result is invalid if the pointer or interface is
// nil.
func dereferenced(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// valueOf returns a value for Difference, or nil if it is missing or belongs to an unexported field.
func valueOf(v reflect.Value) any {
	if !v.IsValid() || !v.CanInterface() {
		return nil
	}
	return v.Interface()
}

// isUnset reports whether a value is missing, zero or empty.
func isUnset(v reflect.Value) bool {
	if !v.IsValid() || v.IsZero() {
		return true
	}
	return (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
}

// mapEntry holds the values of two maps for one key. An invalid value is missing.
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

// itemAt returns an item of a list. The result is invalid if the list has no item i.
func itemAt(list reflect.Value, i int) reflect.Value {
	if i >= list.Len() {
		return reflect.Value{}
	}
	return list.Index(i)
}

// itemNames returns the names of the list items, and reports whether the names are unique.
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

// hasConditions reports whether the first item of a list is a condition.
func hasConditions(list reflect.Value) bool {
	if list.Len() == 0 {
		return false
	}
	_, ok := conditionFields(list.Index(0))
	return ok
}

// conditionFields returns the status and reason of a condition. A condition is an item with a type, a status and a
// reason.
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

// conditionOf returns the condition with these fields.
func conditionOf(fields map[string]string, item reflect.Value) Condition {
	return Condition{Status: fields["status"], Reason: fields["reason"], Message: textField(item, "Message", "message")}
}

// textField returns a string field of an item, by its Go name or by its key in unstructured content. It returns "" if
// the item has no such string field.
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
