// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/memapi"
)

// users perform the steps of the scenario. They see what the API server has, and their requests do not fail.
type users struct {
	run *run
	// skip are the indexes of the Settles that users do not wait for.
	skip []int
	// skipped are the indexes of the Settles that users did not wait for because of a fault.
	skipped []int
	// unsettled counts the changes of objects by users since the last Settle.
	unsettled map[types.NamespacedName]int
	// merged is set if the process may have missed a state between two changes by users.
	merged bool
}

// perform performs all steps.
func (u *users) perform() {
	r := u.run
	for ; r.trace.step < len(r.plan.Steps) && !r.failed(); r.trace.step++ {
		if !slices.Contains(u.skip, r.trace.step) {
			u.take(r.plan.Steps[r.trace.step])
		}
	}
	r.world.over = true
}

func (u *users) take(step Step) {
	r := u.run
	switch {
	case step.settle:
		r.settle()
	case step.sleep > 0:
		r.trace.user(step, nil)
		r.sleep(step.sleep)
	case step.disturbs:
		_ = u.perturb(step, func(err error) { r.trace.user(step, err) })
	default:
		err := u.act(step, func(err error) { r.trace.user(step, err) })
		if err != nil && len(r.schedule) == 0 {
			r.violate(scenarioFailure("step " + step.name + ": " + err.Error()))
		}
	}
}

// act performs a step that is an action, and records it before its consequences.
func (u *users) act(step Step, record func(error)) error {
	r := u.run
	if step.cloud != nil {
		step.cloud(&r.world.cloud)
		record(nil)
		r.trace.foreignChanges++
		r.scheduler.changed()
		return nil
	}
	err := step.do(r.ctx, r.world.user)
	record(err)
	r.watches.forward()
	return err
}

// canContinue reports whether users can perform further steps instead of waiting.
func (u *users) canContinue() bool {
	p, step := u.run.plan, u.run.trace.step
	return p.Steps[step].settle && step+1 < len(p.Steps) &&
		(p.recordsReference() || p.canSkip(step))
}

// meanwhile performs the next steps at once, up to the next Settle, which replaces the present one.
func (u *users) meanwhile() {
	r := u.run
	u.skipped = append(u.skipped, r.trace.step)
	for next := r.trace.step + 1; next < len(r.plan.Steps); next++ {
		r.trace.step = next
		if r.plan.Steps[next].settle {
			return
		}
		if r.plan.Steps[next].sleep == 0 {
			u.take(r.plan.Steps[next])
		}
	}
}

// changed records a change of an object by users.
func (u *users) changed(key types.NamespacedName) { u.unsettled[key]++ }

// delayed records that a watch event is delayed.
func (u *users) delayed(e memapi.Event) {
	u.merged = u.merged || e.Client == phrase.User && u.unsettled[e.Key] > 1
}

// settled records the end of a Settle.
func (u *users) settled() { clear(u.unsettled) }
