// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fields are the fields that one owner owns, in the form of FieldsV1: "f:" and the name of a field, "k:" and the keys
// of a list item, or "v:" and the value of a list item, with the fields below it. A field with nothing below it is
// owned as a whole.
type Fields map[string]any

// FieldsOf returns the fields of an entry. They are empty if it has none, or if they cannot be read.
func FieldsOf(entry metav1.ManagedFieldsEntry) Fields {
	fields := Fields{}
	if entry.FieldsV1 != nil && json.Unmarshal(entry.FieldsV1.GetRawBytes(), (*map[string]any)(&fields)) != nil {
		return Fields{}
	}
	return fields
}

// EntryOf returns the entry in which an owner has applied fields of the object itself, not of a subresource.
func EntryOf(entries []metav1.ManagedFieldsEntry, owner string) (entry metav1.ManagedFieldsEntry, ok bool) {
	i := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == owner && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	})
	if i < 0 {
		return entry, false
	}
	return entries[i], true
}

// NameOf returns the name of a field manager with its operation.
func NameOf(entry *metav1.ManagedFieldsEntry) string {
	switch {
	case entry == nil:
		return "an unknown field manager"
	case entry.Subresource != "":
		return fmt.Sprintf("%q (%s of %s)", entry.Manager, entry.Operation, entry.Subresource)
	}
	return fmt.Sprintf("%q (%s)", entry.Manager, entry.Operation)
}

func (f Fields) below(key string) (Fields, bool) {
	fields, ok := f[key].(map[string]any)
	return fields, ok
}

// whole reports whether a field is owned as a whole: it is not a list or map whose parts have owners of their own.
func (f Fields) whole() bool { return len(f) == 0 }

// item is an owned item of a list.
type item struct {
	keys   map[string]any // for an item of a list with keys
	value  any            // for an item of a set
	isKey  bool
	fields Fields
	used   bool
}

// items returns the owned items of a list. They have no order.
func (f Fields) items() []*item {
	items := []*item{}
	for key := range f {
		kind, content, _ := strings.Cut(key, ":")
		found := &item{isKey: kind == "k"}
		found.fields, _ = f.below(key)
		var err error
		switch kind {
		case "k":
			err = json.Unmarshal([]byte(content), &found.keys)
		case "v":
			err = json.Unmarshal([]byte(content), &found.value)
		default:
			continue
		}
		if err == nil {
			items = append(items, found)
		}
	}
	return items
}

// find returns the unused item that a value of a list is. A key that the value does not set has a default, which is
// only known to the server, so an item with the same other keys is the next best. Exact items must be looked up first.
func find(items []*item, value any, exact bool) *item {
	for _, i := range items {
		if !i.used && i.is(value, exact) {
			return i
		}
	}
	return nil
}

func (i *item) is(value any, exact bool) bool {
	if !i.isKey {
		return same(i.value, value)
	}
	content, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for key, want := range i.keys {
		if got, ok := content[key]; ok && !same(got, want) || !ok && exact {
			return false
		}
	}
	return true
}

// keys returns the names of the keys of an item.
func (i *item) hasKey(field string) bool {
	_, ok := i.keys[field]
	return ok
}

// in returns the place of the item in a list of the stored object, or -1.
func (i *item) in(list []any) int {
	return slices.IndexFunc(list, func(value any) bool { return i.is(value, true) })
}

func (i *item) String() string {
	if !i.isKey {
		return fmt.Sprintf("[%v]", i.value)
	}
	names := make([]string, 0, len(i.keys))
	for name := range i.keys {
		names = append(names, name)
	}
	slices.Sort(names)
	for n, name := range names {
		names[n] = fmt.Sprintf("%s=%v", name, i.keys[name])
	}
	return "[" + strings.Join(names, ",") + "]"
}

// same compares JSON values. Numbers are equal if their values are, whatever their Go types are.
func same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for key, value := range x {
			if other, ok := y[key]; !ok || !same(value, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, same)
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	}
	return 0, false
}
