// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/memapi/apply"
)

// flattener lists the fields of an object. An item of a list is addressed by its keys if the list is a map, by its
// value if it is a set, and otherwise by its index.
type flattener struct {
	fields  fields
	replace *strings.Replacer
	// conditions is set if status.conditions is a map by type although the schema does not say so.
	conditions bool
}

// fieldPath is the path of a field, and its path for masks, in which all items of a list have the same one.
type fieldPath struct{ path, mask string }

func (p fieldPath) field(key string) fieldPath {
	if !plainKey(key) {
		return fieldPath{p.path + "[" + key + "]", p.mask + "[" + key + "]"}
	}
	if p.path == "" {
		return fieldPath{key, key}
	}
	return fieldPath{p.path + "." + key, p.mask + "." + key}
}

func (p fieldPath) item(name string) fieldPath { return fieldPath{p.path + "[" + name + "]", p.mask} }

func plainKey(key string) bool { return !strings.ContainsAny(key, ".[]/ ") }

// set sets a field that is not in a list.
func (f flattener) set(path, value string) { f.fields[path] = field{value, path} }

func (f flattener) add(at fieldPath, value any, t apply.Type) {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			if key != "observedGeneration" { // further writes change generations
				f.add(at.field(key), item, t.Field(key))
			}
		}
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
		f.fields[at.path] = field{f.scalar(value), at.mask}
	}
}

// identity names an item of a list by its keys or, if there are none, by its value.
func (f flattener) identity(item any, keys []string) string {
	content, ok := item.(map[string]any)
	if !ok {
		return f.text(item)
	}
	if len(keys) == 0 {
		whole := flattener{fields: fields{}, replace: f.replace}
		whole.add(fieldPath{}, item, apply.Type{})
		return whole.fields.String()
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
	case isTime(s):
		return "a time"
	default:
		return f.replace.Replace(s)
	}
}

func (f flattener) scalar(value any) string {
	if s, ok := value.(string); ok && !isTime(s) {
		return strconv.Quote(f.text(s))
	}
	return f.text(value)
}

func isTime(s string) bool {
	if len(s) < len("2000-01-01T00:00:00Z") || s[4] != '-' || s[10] != 'T' {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}

// conditionsAreMap reports whether the conditions of a custom kind are a map by type because its schema does not
// declare what kind of list they are. By the conventions of the API they always are.
func (p *plan) conditionsAreMap(gvk schema.GroupVersionKind) bool {
	kind, ok := p.registry.For(gvk)
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
