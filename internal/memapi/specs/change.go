// SPDX-License-Identifier: Apache-2.0

package specs

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Path is the way to a property: the names of fields, keys of maps, and indexes of lists, like "[0]".
type Path []string

// String formats a path as "spec.ports[0].name". Keys that are not plain are in brackets.
func (p Path) String() string {
	var b strings.Builder
	for i, element := range p {
		_, isIndex := indexOf(element)
		switch {
		case isIndex:
			b.WriteString(element)
		case strings.ContainsAny(element, ".[]/ "):
			b.WriteString("[" + element + "]")
		case i > 0:
			b.WriteString("." + element)
		default:
			b.WriteString(element)
		}
	}
	return b.String()
}

// ParsePath is the opposite of String.
func ParsePath(s string) Path {
	var path Path
	for s != "" {
		if s[0] == '[' {
			element, rest, _ := strings.Cut(s[1:], "]")
			if _, err := strconv.Atoi(element); err == nil {
				element = "[" + element + "]"
			}
			path, s = append(path, element), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(s, ".[")
		if end < 0 {
			return append(path, s)
		}
		path, s = append(path, s[:end]), strings.TrimPrefix(s[end:], ".")
	}
	return path
}

// with returns a longer path, which shares nothing with the path.
func (p Path) with(element string) Path { return append(slices.Clip(p), element) }

func indexOf(element string) (int, bool) {
	number, ok := strings.CutPrefix(element, "[")
	if !ok {
		return 0, false
	}
	index, err := strconv.Atoi(strings.TrimSuffix(number, "]"))
	return index, err == nil
}

// Value is a value of a property.
type Value struct {
	// Content is JSON content, with int64 and float64 as numbers.
	Content any
	// Unset removes the property.
	Unset bool
	// Doubtful is set for values that are probably not meaningful.
	Doubtful bool
}

// String formats a value as JSON.
func (v Value) String() string {
	if v.Unset {
		return "unset"
	}
	encoded, err := json.Marshal(v.Content)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// Change gives a property a value.
type Change struct {
	Path  Path
	Value Value
}

// String formats a change as "spec.size = 3".
func (c Change) String() string { return c.Path.String() + " = " + c.Value.String() }

// Apply changes the content of an object. It reports whether the parent of the property exists; otherwise nothing
// changes.
func (c Change) Apply(content map[string]any) bool {
	return len(c.Path) > 0 && apply(content, c.Path, c.Value, func(any) {})
}

// apply changes a property of an object or list. put replaces the object or list in its parent.
func apply(parent any, path Path, value Value, put func(any)) bool {
	switch parent := parent.(type) {
	case map[string]any:
		child, ok := parent[path[0]]
		if len(path) > 1 {
			return ok && apply(child, path[1:], value, func(changed any) { parent[path[0]] = changed })
		}
		if value.Unset {
			delete(parent, path[0])
		} else {
			parent[path[0]] = runtime.DeepCopyJSONValue(value.Content)
		}
		return true
	case []any:
		index, ok := indexOf(path[0])
		if !ok || index >= len(parent) {
			return false
		}
		if len(path) > 1 {
			return apply(parent[index], path[1:], value, func(changed any) { parent[index] = changed })
		}
		if value.Unset {
			put(slices.Delete(slices.Clone(parent), index, index+1))
		} else {
			parent[index] = runtime.DeepCopyJSONValue(value.Content)
		}
		return true
	default:
		return false
	}
}
