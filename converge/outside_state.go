// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"encoding/json"
	"sync"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/memapi/apply"
)

// outsideState is the content of the external systems of [Scenario.Outside].
type outsideState struct {
	// text is the content as JSON.
	text string
	// values are those of the outermost object of the JSON, or the whole content with an empty key.
	values map[string]any
}

// outsideOf encodes the content of external systems.
func outsideOf(systems any) (outsideState, error) {
	text, err := json.Marshal(systems)
	if err != nil {
		return outsideState{}, err
	}
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		return outsideState{}, err
	}
	values, ok := content.(map[string]any)
	if !ok && content != nil {
		values = map[string]any{"": content}
	}
	return outsideState{string(text), values}, nil
}

// outsideName is the name of a value in messages.
func outsideName(key string) string {
	if key == "" {
		return "outside"
	}
	return "outside " + key
}

// flattenOutside lists the fields of the external systems, as those of one object for each key.
func (r reader) flattenOutside(s *snapshot, replace func() *replacer, add func(name string, f *flatObject)) {
	for _, key := range phrase.SortedKeys(s.outside.values) {
		add(outsideName(s.generated.replace(key)), &flatObject{read: sync.OnceValue(func() fields {
			f := flattener{fields: fields{}, replace: replace()}
			switch value := s.outside.values[key].(type) {
			case map[string]any, []any:
				f.add(fieldPath{}, value, apply.Type{})
			default:
				f.add(fieldPath{"value", "value"}, value, apply.Type{})
			}
			for _, mask := range r.masks {
				if mask.kind.Empty() {
					f.remove(mask.field)
				}
			}
			return f.fields
		})})
	}
}
