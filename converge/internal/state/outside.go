// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"sync"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/memapi/apply"
)

// Outside is the content of the external systems of [Scenario.Outside].
type Outside struct {
	// Text is the content as JSON.
	Text string
	// Values are the values of the outermost object of the JSON, or the whole content with an empty key.
	Values map[string]any
}

// OutsideOf encodes the content of external systems.
func OutsideOf(systems any) (Outside, error) {
	text, err := json.Marshal(systems)
	if err != nil {
		return Outside{}, err
	}
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		return Outside{}, err
	}
	values, ok := content.(map[string]any)
	if !ok && content != nil {
		values = map[string]any{"": content}
	}
	return Outside{string(text), values}, nil
}

// OutsideName is the name of a value in messages.
func OutsideName(key string) string {
	if key == "" {
		return "outside"
	}
	return "outside " + key
}

// flattenOutside lists the fields of the external systems, as the fields of one object for each key.
func (r Reader) flattenOutside(s *Snapshot, replace func() *Replacer, add func(name string, f *FlatObject)) {
	for _, key := range phrase.SortedKeys(s.Outside.Values) {
		add(OutsideName(s.Generated.Replace(key)), &FlatObject{Read: sync.OnceValue(func() Fields {
			f := flattener{fields: Fields{}, replace: replace()}
			switch value := s.Outside.Values[key].(type) {
			case map[string]any, []any:
				f.add(fieldPath{}, value, apply.Type{})
			default:
				f.add(fieldPath{"value", "value"}, value, apply.Type{})
			}
			for _, mask := range r.Masks {
				if mask.Kind.Empty() {
					f.remove(mask.Field)
				}
			}
			return f.fields
		})})
	}
}
