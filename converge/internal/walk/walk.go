// SPDX-License-Identifier: Apache-2.0

// Package walk has what users write one after the other: specs as changes of an object, their encoding for a command
// line, and their description.
package walk

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/memapi/specs"
)

// Spec is a desired state: changes of the base, or a deleted object.
type Spec struct {
	Deleted bool
	Changes []specs.Change
	// Disturbance is the name of one that users perform instead of a write. The desired state is the one before it.
	Disturbance string
}

// Walk is what users write, one after the other.
type Walk []Spec

// With returns a spec with a further change, which replaces one of the same property.
func (s Spec) With(changes ...specs.Change) Spec {
	all := slices.Clone(s.Changes)
	for _, change := range changes {
		all = slices.DeleteFunc(all, func(c specs.Change) bool { return slices.Equal(c.Path, change.Path) })
		all = append(all, change)
	}
	return Spec{Changes: Sorted(all)}
}

// Sorted returns changes, with the changes of parents before the changes of their parts.
func Sorted(changes []specs.Change) []specs.Change {
	return slices.SortedStableFunc(slices.Values(changes), func(a, b specs.Change) int {
		return slices.Compare(a.Path, b.Path)
	})
}

// JSONContent returns a value as JSON has it, with int64 for integers, as the schema has them.
func JSONContent(value any) (any, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var content any
	err = utiljson.Unmarshal(encoded, &content)
	return content, err
}

// Describe describes a spec by its difference from the one before it. base is the content of the object without
// changes. It is nil if that is not known.
func (s Spec) Describe(before Walk, base map[string]any) string {
	switch {
	case s.Deleted:
		return "delete"
	case s.Disturbance != "":
		return s.Disturbance
	}
	old := map[string]specs.Change{}
	created := true
	if len(before) > 0 && !before[len(before)-1].Deleted {
		created = false
		for _, change := range before[len(before)-1].Changes {
			old[change.Path.String()] = change
		}
	}
	var parts []string
	for _, change := range s.Changes {
		path := change.Path.String()
		if other, ok := old[path]; ok {
			parts = append(parts, differences(other, change)...)
		} else {
			present := specs.Change{}
			if base != nil {
				present = specs.Change{Path: change.Path, Value: ValueIn(base, change.Path)}
			}
			parts = append(parts, differences(present, change)...)
		}
		delete(old, path)
	}
	for _, path := range phrase.SortedKeys(old) {
		parts = append(parts, path+" as at first")
	}
	text := strings.Join(parts, ", ")
	switch {
	case created && text == "":
		return "create"
	case created:
		return "create with " + text
	case text == "":
		return "write the same again"
	default:
		return text
	}
}

// ValueIn returns the value of a property in the content of an object.
func ValueIn(content map[string]any, path specs.Path) specs.Value {
	var value any = content
	for _, element := range path {
		var found bool
		if value, found = childrenOf(value)[element]; !found {
			return specs.Value{Unset: true}
		}
	}
	return specs.Value{Content: value}
}

const (
	// longestValue is how long the text of a value may be. Only the parts of longer ones are described.
	longestValue = 60
	// mostParts is how many parts of a value are described.
	mostParts = 6
)

// differences describes how the value of a property changes: the parts that differ, if both values have parts. An empty
// path means that the value before is not known.
func differences(before, after specs.Change) []string {
	if len(before.Path) > 0 && before.Value.String() == after.Value.String() {
		return nil
	}
	parts := partsOf(before.Value.Content, after)
	if more := len(parts) - mostParts; more > 0 {
		parts = append(parts[:mostParts], fmt.Sprintf("%d more in %s", more, after.Path))
	}
	return parts
}

// partsOf describes the parts of a value that differ from another value.
func partsOf(before any, after specs.Change) []string {
	old, now := childrenOf(before), childrenOf(after.Value.Content)
	if len(now) == 0 || len(old) == 0 && len(after.Value.String()) <= longestValue {
		return []string{after.String()}
	}
	all := maps.Clone(now)
	maps.Copy(all, old)
	var parts []string
	for _, element := range slices.SortedFunc(maps.Keys(all), compareElements) {
		was, existed := old[element]
		is, exists := now[element]
		if existed && exists && (specs.Value{Content: was}).String() == (specs.Value{Content: is}).String() {
			continue
		}
		part := specs.Change{
			Path: append(slices.Clip(after.Path), element), Value: specs.Value{Content: is, Unset: !exists},
		}
		parts = append(parts, partsOf(was, part)...)
	}
	return parts
}

// childrenOf returns the fields of an object, or the items of a list, by the last element of their paths.
func childrenOf(content any) map[string]any {
	switch content := content.(type) {
	case map[string]any:
		return content
	case []any:
		items := map[string]any{}
		for i, item := range content {
			items["["+strconv.Itoa(i)+"]"] = item
		}
		return items
	}
	return nil
}

// compareElements orders the elements of paths. A longer index is a higher one.
func compareElements(a, b string) int {
	if strings.HasPrefix(a, "[") && strings.HasPrefix(b, "[") && len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// Disturbed returns a walk at whose end users perform a disturbance.
func (w Walk) Disturbed(name string) Walk {
	s := Spec{Disturbance: name}
	if len(w) > 0 {
		s.Changes = w[len(w)-1].Changes
	}
	return append(slices.Clip(w), s)
}

// Describe describes each write. base is the content of the object without changes. It is nil if that is not known.
func (w Walk) Describe(base map[string]any) []string {
	lines := make([]string, len(w))
	for i := range w {
		lines[i] = w[i].Describe(w[:i], base)
	}
	return lines
}

// Size counts writes and changes.
func (w Walk) Size() int {
	n := len(w)
	for _, s := range w {
		n += len(s.Changes)
	}
	return n
}

// Paths lists the properties that a walk changes.
func (w Walk) Paths() []string {
	found := map[string]bool{}
	for _, s := range w {
		for _, change := range s.Changes {
			found[change.Path.String()] = true
		}
	}
	return phrase.SortedKeys(found)
}

// Without returns a walk that does not change a property, in one write or, if that is -1, in all of them.
func (w Walk) Without(path string, write int) Walk {
	shorter := slices.Clone(w)
	for i := range shorter {
		if write < 0 || i == write {
			shorter[i].Changes = slices.DeleteFunc(slices.Clone(shorter[i].Changes), func(c specs.Change) bool {
				return c.Path.String() == path
			})
		}
	}
	return shorter
}

const (
	// Version begins encoded walks.
	Version = "w1"
	// unset is not JSON.
	unset = "unset"
	// disturbanceMark begins no path.
	disturbanceMark = "!"
)

// Encode formats a walk with the faults of its run for a command line.
func (w Walk) Encode(seed uint64, faults inject.Schedule) string {
	elements := make([]string, len(w))
	for i, spec := range w {
		if spec.Deleted {
			elements[i] = "-"
			continue
		}
		if spec.Disturbance != "" {
			elements[i] = disturbanceMark + url.QueryEscape(spec.Disturbance)
			continue
		}
		changes := make([]string, len(spec.Changes))
		for n, change := range spec.Changes {
			changes[n] = url.QueryEscape(change.Path.String()) + "=" + url.QueryEscape(change.Value.String())
		}
		elements[i] = strings.Join(changes, "&")
	}
	encoded := fmt.Sprintf("%s:%d:%s", Version, seed, strings.Join(elements, ";"))
	if len(faults) > 0 {
		encoded += "|" + faults.Encode(seed)
	}
	return encoded
}

// Decode is the opposite of encode.
func Decode(encoded string) (w Walk, seed uint64, faults inject.Schedule, err error) {
	encoded, scheduled, _ := strings.Cut(strings.TrimSpace(encoded), "|")
	version, rest, _ := strings.Cut(encoded, ":")
	number, list, ok := strings.Cut(rest, ":")
	if seed, err = strconv.ParseUint(number, 10, 64); !ok || version != Version || err != nil {
		return nil, 0, nil, fmt.Errorf("walk %q: must begin with %q, a seed and a colon", encoded, Version+":")
	}
	for element := range strings.SplitSeq(list, ";") {
		if escaped, ok := strings.CutPrefix(element, disturbanceMark); ok {
			name, err := url.QueryUnescape(escaped)
			if err != nil {
				return nil, 0, nil, fmt.Errorf("walk: disturbance %q: %w", escaped, err)
			}
			w = w.Disturbed(name)
			continue
		}
		s := Spec{Deleted: element == "-"}
		for change := range strings.SplitSeq(element, "&") {
			if s.Deleted || change == "" {
				continue
			}
			decoded, err := decodeChange(change)
			if err != nil {
				return nil, 0, nil, fmt.Errorf("walk: change %q: %w", change, err)
			}
			s.Changes = append(s.Changes, decoded)
		}
		w = append(w, s)
	}
	if scheduled != "" {
		faults, _, err = inject.Decode(scheduled)
	}
	return w, seed, faults, err
}

func decodeChange(encoded string) (specs.Change, error) {
	escapedPath, escapedValue, ok := strings.Cut(encoded, "=")
	path, err := url.QueryUnescape(escapedPath)
	if err != nil || !ok {
		return specs.Change{}, fmt.Errorf("want a path, an equals sign and a value")
	}
	value, err := url.QueryUnescape(escapedValue)
	if err != nil {
		return specs.Change{}, err
	}
	change := specs.Change{Path: specs.ParsePath(path)}
	if value == unset {
		change.Value.Unset = true
		return change, nil
	}
	change.Value.Content, err = JSONContent(json.RawMessage(value))
	return change, err
}
