// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/memapi/apply"
)

// flattener lists the fields of an object. An item of a list is addressed by its keys if the list is a map, by its
// value if it is a set, and otherwise by its index.
type flattener struct {
	fields  Fields
	replace *Replacer
	// conditions is set if status.conditions is a map by type although the schema does not say so.
	conditions bool
}

// fieldPath is the path of a field, and its path for masks, in which all items of a list have the same one.
type fieldPath struct{ path, mask string }

func (p fieldPath) field(key string) fieldPath {
	if !PlainKey(key) {
		return p.bracketed(key)
	}
	if p.path == "" {
		return fieldPath{key, key}
	}
	return fieldPath{p.path + "." + key, p.mask + "." + key}
}

func (p fieldPath) bracketed(key string) fieldPath {
	return fieldPath{p.path + "[" + key + "]", p.mask + "[" + key + "]"}
}

func (p fieldPath) item(name string) fieldPath { return fieldPath{p.path + "[" + name + "]", p.mask} }

// PlainKey reports whether a path has a key after a dot, and not in brackets.
func PlainKey(key string) bool { return !strings.ContainsAny(key, ".[]/ ") }

// set sets a field that is not in a list.
func (f flattener) set(path, value string) { f.fields[path] = Field{value, path} }

func (f flattener) add(at fieldPath, value any, t apply.Type) {
	switch value := value.(type) {
	case map[string]any:
		addMap(f, at.field, value, t)
	case []any:
		keys, associative := t.Keys()
		if f.conditions && at.path == "status.conditions" && areConditions(value) {
			keys, associative = []string{"type"}, true
		}
		seen := map[string]int{}
		for i, item := range value {
			name := "#" + strconv.Itoa(i)
			if associative {
				name = f.identity(item, keys)
			}
			if seen[name]++; seen[name] > 1 {
				name += " #" + strconv.Itoa(seen[name])
			}
			f.add(at.item(name), item, t.Item())
		}
	case nil:
	default:
		f.fields[at.path] = Field{f.scalar(value), at.mask}
	}
}

// addMap adds the items of a map, whose keys may contain generated names. If the names of several are alike, their
// content determines their order.
func addMap[V any](f flattener, at func(key string) fieldPath, items map[string]V, t apply.Type) {
	var renamed map[string][]string
	for key, item := range items {
		switch name := f.replace.Names.Replace(key); {
		case key == "observedGeneration": // further writes change generations
		case key == Touched: // operators pass annotations on
		case name == key:
			f.add(at(key), item, t.Field(key))
		default:
			if renamed == nil {
				renamed = map[string][]string{}
			}
			renamed[name] = append(renamed[name], key)
		}
	}
	for name, keys := range renamed {
		slices.SortFunc(keys, func(a, b string) int { return strings.Compare(f.whole(items[a]), f.whole(items[b])) })
		for i, key := range keys {
			f.add(at(numbered(name, i)), items[key], t.Field(key))
		}
	}
}

// whole returns the content of an item.
func (f flattener) whole(item any) string {
	whole := flattener{fields: Fields{}, replace: f.replace}
	whole.add(fieldPath{}, item, apply.Type{})
	return whole.fields.String()
}

// identity names an item of a list by its keys or, if there are none, by its value.
func (f flattener) identity(item any, keys []string) string {
	content, ok := item.(map[string]any)
	if !ok {
		return f.text(item)
	}
	if len(keys) == 0 {
		return f.whole(item)
	}
	var parts []string
	for _, key := range keys {
		if value, ok := content[key]; ok {
			parts = append(parts, key+"="+f.text(value))
		}
	}
	return strings.Join(parts, ",")
}

// text is a scalar without quotes.
func (f flattener) text(value any) string {
	switch s, ok := value.(string); {
	case !ok:
		return fmt.Sprint(value)
	case IsTime(s):
		return "a time"
	default:
		return f.replace.Replace(s)
	}
}

func (f flattener) scalar(value any) string {
	if s, ok := value.(string); ok && !IsTime(s) {
		return strconv.Quote(f.text(s))
	}
	return f.text(value)
}

// IsTime reports whether a text is a time.
func IsTime(s string) bool {
	if len(s) < len("2000-01-01T00:00:00Z") || s[4] != '-' || s[10] != 'T' {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}

// conditionsAreMap reports whether the conditions of a custom kind are a map by type because its schema does not
// declare what kind of list they are. By the conventions of the API they always are.
func (r Reader) conditionsAreMap(gvk schema.GroupVersionKind) bool {
	kind, ok := r.Registry.For(gvk)
	if !ok || !kind.Custom {
		return false
	}
	s := kind.Schema()
	return s == nil || s.Properties["status"].Properties["conditions"].XListType == nil
}

// areConditions reports whether all items of a list have a type, each another one.
func areConditions(items []any) bool {
	seen := map[string]bool{}
	for _, item := range items {
		content, _ := item.(map[string]any)
		name, ok := content["type"].(string)
		if !ok || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}
