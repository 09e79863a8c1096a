// SPDX-License-Identifier: Apache-2.0

package converge

import "trueup.dev/converge/internal/state"

// outside returns the content of the external systems. It is empty without Scenario.Outside.
func (p *plan) outside() (state.Outside, error) {
	if p.Outside == nil {
		return state.Outside{}, nil
	}
	return state.OutsideOf(p.Outside())
}

// outside is that of the plan. That it can be encoded was checked at the start of the run.
func (w *world) outside() state.Outside {
	content, err := w.plan.outside()
	if err != nil {
		return state.Outside{Text: err.Error(), Values: map[string]any{"": err.Error()}}
	}
	return content
}

// changesOutside calls an external system, and records whether that has changed it, if Scenario.Outside shows that.
func (r *run) changesOutside(name string, effect func() error) error {
	if r.plan.Outside == nil {
		return effect()
	}
	before := r.world.outside().Text
	err := effect()
	if r.world.outside().Text != before {
		r.world.cloud.version++
		r.trace.cloudChanged("call " + name)
		r.scheduler.changed()
	}
	return err
}
