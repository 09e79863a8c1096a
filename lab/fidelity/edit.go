// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// An Edit is one change of the JSON form of an object.
type Edit struct {
	// Path is the path of a field, separated by slashes. A slash in a part is written ~1, an element of a list
	// [key=value].
	Path string

	// Value is the new value of the field; nil removes it. Strings in it that are tokens are replaced by values of the
	// object, see Token.
	Value any
}

// Set is an edit that sets a field.
func Set(path string, value any) Edit { return Edit{Path: path, Value: value} }

// Remove is an edit that removes a field.
func Remove(path string) Edit { return Edit{Path: path} }

// String returns path=value, or -path.
func (e Edit) String() string {
	if e.Value == nil {
		return "-" + e.Path
	}
	return e.Path + "=" + compact(e.Value)
}

func compact(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

func (e Edit) parts() []string {
	parts := strings.Split(e.Path, "/")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "~1", "/")
	}
	return parts
}

// element returns the key and the value by which a part selects an element of a list.
func element(part string) (key, value string, ok bool) {
	if !strings.HasPrefix(part, "[") {
		return "", "", false
	}
	return strings.Cut(strings.Trim(part, "[]"), "=")
}

// keyed returns the value in a part of a path, which may be a number.
func keyed(text string) any {
	if number, err := strconv.ParseInt(text, 10, 64); err == nil {
		return number
	}
	return text
}

// edited returns a copy of the content with the edits applied.
func edited(content map[string]any, edits []Edit) map[string]any {
	content = runtime.DeepCopyJSON(content)
	for _, e := range edits {
		content, _ = edit(content, e.parts(), e.Value).(map[string]any)
	}
	return content
}

func edit(at any, parts []string, value any) any {
	if len(parts) == 0 {
		return runtime.DeepCopyJSONValue(value)
	}
	key, is, ok := element(parts[0])
	if !ok {
		fields, ok := at.(map[string]any)
		if !ok {
			if value == nil {
				return at
			}
			fields = map[string]any{}
		}
		next := edit(fields[parts[0]], parts[1:], value)
		if next == nil {
			delete(fields, parts[0])
		} else {
			fields[parts[0]] = next
		}
		return fields
	}
	items, _ := at.([]any)
	i := slices.IndexFunc(items, func(item any) bool {
		fields, ok := item.(map[string]any)
		return ok && fmt.Sprint(fields[key]) == is
	})
	switch {
	case i < 0 && value == nil:
		return at
	case i < 0:
		return append(items, edit(map[string]any{key: keyed(is)}, parts[1:], value))
	}
	if items[i] = edit(items[i], parts[1:], value); items[i] == nil {
		return slices.Delete(items, i, i+1)
	}
	return items
}

// merging returns the body of a merge patch with the edits. Elements of lists are selected by key, which only strategic
// merge patches support.
func merging(edits []Edit) map[string]any {
	body := map[string]any{}
	for _, e := range edits {
		merge(body, e.parts(), e.Value)
	}
	return body
}

func merge(at map[string]any, parts []string, value any) {
	if len(parts) == 1 {
		at[parts[0]] = runtime.DeepCopyJSONValue(value)
		return
	}
	key, is, ok := element(parts[1])
	if !ok {
		next, ok := at[parts[0]].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[parts[0]] = next
		}
		merge(next, parts[1:], value)
		return
	}
	item := map[string]any{key: keyed(is)}
	switch {
	case len(parts) > 2:
		merge(item, parts[2:], value)
	case value == nil:
		item["$patch"] = "delete"
	default:
		item, _ = runtime.DeepCopyJSONValue(value).(map[string]any)
	}
	items, _ := at[parts[0]].([]any)
	at[parts[0]] = append(items, item)
}

// pointing returns the operations of a JSON patch with the edits. Elements of lists are assumed to be the first.
func pointing(edits []Edit) []any {
	operations := []any{}
	for _, e := range edits {
		pointer := ""
		for _, part := range e.parts() {
			if _, _, ok := element(part); ok {
				part = "0"
			}
			pointer += "/" + strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1")
		}
		if e.Value == nil {
			operations = append(operations, map[string]any{"op": "remove", "path": pointer})
			continue
		}
		operations = append(operations, map[string]any{
			"op": "add", "path": pointer, "value": runtime.DeepCopyJSONValue(e.Value),
		})
	}
	return operations
}
