// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"encoding/json"
	"sync"

	"trueup.dev/internal/memapi/apply"
)

// outsideState is the content of the external systems of [Scenario.Outside].
type outsideState struct {
	// text is the content as JSON.
	text string
	// values are those of the outermost object of the JSON, or the whole content with an empty key.
	values map[string]any
}

// outside returns the content of the external systems. It is empty without Scenario.Outside.
func (p *plan) outside() (outsideState, error) {
	if p.Outside == nil {
		return outsideState{}, nil
	}
	text, err := json.Marshal(p.Outside())
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

// outside is that of the plan. That it can be encoded was checked at the start of the run.
func (w *world) outside() outsideState {
	content, err := w.plan.outside()
	if err != nil {
		return outsideState{err.Error(), map[string]any{"": err.Error()}}
	}
	return content
}

// outsideName is the name of a value in messages.
func outsideName(key string) string {
	if key == "" {
		return "outside"
	}
	return "outside " + key
}

// flattenOutside lists the fields of the external systems, as those of one object for each key.
func (p *plan) flattenOutside(s *snapshot, replace func() *replacer, add func(name string, f *flatObject)) {
	for _, key := range sortedKeys(s.outside.values) {
		add(outsideName(s.generated.replace(key)), &flatObject{read: sync.OnceValue(func() fields {
			f := flattener{fields: fields{}, replace: replace()}
			switch value := s.outside.values[key].(type) {
			case map[string]any, []any:
				f.add(fieldPath{}, value, apply.Type{})
			default:
				f.add(fieldPath{"value", "value"}, value, apply.Type{})
			}
			for _, mask := range p.Masks {
				if mask.Object == nil {
					f.remove(mask.Field)
				}
			}
			return f.fields
		})})
	}
}

// changesOutside calls an external system, and records whether that has changed it, if Scenario.Outside shows that.
func (r *run) changesOutside(name string, effect func() error) error {
	if r.plan.Outside == nil {
		return effect()
	}
	before := r.world.outside().text
	err := effect()
	if r.world.outside().text != before {
		r.world.cloud.version++
		r.trace.cloudChanged("call " + name)
		r.scheduler.changed()
	}
	return err
}
