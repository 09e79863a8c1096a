// SPDX-License-Identifier: Apache-2.0

package converge

// outside returns the content of the external systems. It is empty without Scenario.Outside.
func (p *plan) outside() (outsideState, error) {
	if p.Outside == nil {
		return outsideState{}, nil
	}
	return outsideOf(p.Outside())
}

// outside is that of the plan. That it can be encoded was checked at the start of the run.
func (w *world) outside() outsideState {
	content, err := w.plan.outside()
	if err != nil {
		return outsideState{err.Error(), map[string]any{"": err.Error()}}
	}
	return content
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
