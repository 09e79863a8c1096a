// SPDX-License-Identifier: Apache-2.0

// Package walk has what users write one after the other: specs as changes of an object, their encoding for a command
// line, and their description.
package walk

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// JSONContent returns a value as JSON has it, with int64 for numbers without a fraction.
func JSONContent(value any) (any, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var wrapped map[string]any
	err = json.Unmarshal(fmt.Appendf(nil, `{"value":%s}`, encoded), &wrapped)
	if err != nil {
		return nil, err
	}
	// Numbers as the schema has them.
	return (&unstructured.Unstructured{Object: normalized(wrapped)}).Object["value"], nil
}

// normalized returns JSON content with int64 for numbers without a fraction.
func normalized(content map[string]any) map[string]any {
	for key, value := range content {
		content[key] = normalizedValue(value)
	}
	return content
}

func normalizedValue(value any) any {
	switch value := value.(type) {
	case float64:
		if whole := int64(value); float64(whole) == value {
			return whole
		}
	case map[string]any:
		return normalized(value)
	case []any:
		for i := range value {
			value[i] = normalizedValue(value[i])
		}
	}
	return value
}

// Describe describes a spec by its difference from the one before it.
func (s Spec) Describe(before Walk) string {
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
		if other, ok := old[path]; !ok || other.Value.String() != change.Value.String() {
			parts = append(parts, change.String())
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

// Disturbed returns a walk at whose end users perform a disturbance.
func (w Walk) Disturbed(name string) Walk {
	s := Spec{Disturbance: name}
	if len(w) > 0 {
		s.Changes = w[len(w)-1].Changes
	}
	return append(slices.Clip(w), s)
}

// Describe describes each write.
func (w Walk) Describe() []string {
	lines := make([]string, len(w))
	for i := range w {
		lines[i] = w[i].Describe(w[:i])
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
