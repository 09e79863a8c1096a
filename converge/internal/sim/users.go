// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/memapi"
)

// users perform the steps of the scenario. They see what the API server has, and their requests do not fail.
type users struct {
	run *run
	// skip are the indexes of the Settles that users do not wait for, and hurry of those that they do not wait for once
	// another client has deleted an object.
	skip, hurry []int
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
	for ; r.trace.Step < len(r.machine.Steps) && !r.verdict.Failed(); r.trace.Step++ {
		if !slices.Contains(u.skip, r.trace.Step) {
			u.take(r.machine.Steps[r.trace.Step])
		}
	}
	r.world.Over = true
}

func (u *users) take(step Step) {
	r := u.run
	switch {
	case step.Settle:
		r.settle()
	case step.Sleep > 0:
		r.trace.User(step.Name, false, false, nil)
		r.sleep(step.Sleep)
	case step.Disturbs:
		_ = u.perturb(step, func(err error) { r.trace.User(step.Name, false, step.Do != nil, err) })
	default:
		err := u.act(step, func(err error) { r.trace.User(step.Name, false, step.Do != nil, err) })
		if err != nil && len(r.schedule) == 0 {
			r.verdict.Violate(finding.ScenarioFailure("step " + step.Name + ": " + err.Error()))
		}
	}
}

// act performs a step that is an action, and records it before its consequences.
func (u *users) act(step Step, record func(error)) error {
	r := u.run
	if step.Cloud != nil {
		step.Cloud(&r.world.Cloud)
		record(nil)
		r.trace.ForeignChanges++
		r.scheduler.changed()
		return nil
	}
	err := step.Do(r.ctx, r.world.User)
	record(err)
	r.watches.forward()
	return err
}

// canContinue reports whether users can perform further steps instead of waiting.
func (u *users) canContinue() bool {
	m, step := u.run.machine, u.run.trace.Step
	return m.Steps[step].Settle && step+1 < len(m.Steps) && (m.Judged.Records || m.CanSkip(step))
}

// meanwhile performs the next steps at once, up to the next Settle, which replaces the present one.
func (u *users) meanwhile() {
	r := u.run
	u.skipped = append(u.skipped, r.trace.Step)
	for next := r.trace.Step + 1; next < len(r.machine.Steps); next++ {
		r.trace.Step = next
		if r.machine.Steps[next].Settle {
			return
		}
		if r.machine.Steps[next].Sleep == 0 {
			u.take(r.machine.Steps[next])
		}
	}
}

// deleted is called when another client has deleted an object.
func (u *users) deleted() {
	for slices.Contains(u.hurry, u.run.trace.Step) && u.canContinue() {
		u.meanwhile()
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

// disturb performs the disturbances that the schedule has at a moment: before or when an action happens. It reports
// whether one has succeeded.
func (u *users) disturb(moment string, at inject.Site) bool {
	r, disturbed := u.run, false
	for _, step := range r.machine.Disturbances {
		s := at
		s.Act = step.Name + " " + moment + " " + at.Act
		if r.faults.at(s, inject.SetOf(inject.Disturbance)) != inject.Disturbance {
			continue
		}
		p := r.faults.last
		if err := u.perturb(step, func(err error) {
			r.trace.Fault(phrase.User, step.Name+phrase.After(err), inject.Disturbance)
		}); err != nil {
			r.faults.withdraw(p)
		} else {
			disturbed = true
		}
	}
	return disturbed
}

// perturb performs a disturbance. What it creates is foreign.
func (u *users) perturb(step Step, record func(error)) error {
	r := u.run
	r.world.Disturbing = true
	defer func() { r.world.Disturbing = false }()
	err := u.act(step, record)
	if err == nil {
		r.lessons.Disturbed = append(r.lessons.Disturbed, step.Name)
	}
	return err
}
