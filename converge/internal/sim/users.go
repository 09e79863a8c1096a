// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/memapi"
)

// users perform the steps of the scenario. They see what the API server has, and their requests do not fail.
type users struct {
	*scene

	watches *watches
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

// take performs a step that is an action.
func (u *users) take(step Step) {
	record := func(err error) { u.trace.User(step.Name, false, step.Do != nil, err) }
	if step.Disturbs {
		_ = u.perturb(step, record)
		return
	}
	if err := u.act(step, record); err != nil && u.faults.none() {
		u.verdict.Violate(finding.ScenarioFailure("step " + step.Name + ": " + err.Error()))
	}
}

// act performs a step that is an action, and records it before its consequences.
func (u *users) act(step Step, record func(error)) error {
	if step.Cloud != nil {
		step.Cloud(&u.world.Cloud)
		record(nil)
		u.trace.ForeignChanges++
		u.scheduler.changed()
		return nil
	}
	err := step.Do(context.Background(), u.world.User)
	record(err)
	u.watches.forward()
	return err
}

// canContinue reports whether users can perform further steps instead of waiting.
func (u *users) canContinue() bool {
	m, step := u.machine, u.trace.Step
	return m.Steps[step].Settle && step+1 < len(m.Steps) && (m.Judged.Records || m.CanSkip(step))
}

// meanwhile performs the next steps at once, up to the next Settle, which replaces the present one.
func (u *users) meanwhile() {
	u.skipped = append(u.skipped, u.trace.Step)
	for next := u.trace.Step + 1; next < len(u.machine.Steps); next++ {
		u.trace.Step = next
		if u.machine.Steps[next].Settle {
			return
		}
		if u.machine.Steps[next].Sleep == 0 {
			u.take(u.machine.Steps[next])
		}
	}
}

// deleted is called when another client has deleted an object.
func (u *users) deleted() {
	for slices.Contains(u.hurry, u.trace.Step) && u.canContinue() {
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
	disturbed := false
	for _, step := range u.machine.Disturbances {
		s := at
		s.Act = step.Name + " " + moment + " " + at.Act
		if u.faults.at(s, inject.SetOf(inject.Disturbance)) != inject.Disturbance {
			continue
		}
		p := u.faults.last
		if err := u.perturb(step, func(err error) {
			u.trace.Fault(phrase.User, step.Name+phrase.After(err), inject.Disturbance)
		}); err != nil {
			u.faults.withdraw(p)
		} else {
			disturbed = true
		}
	}
	return disturbed
}

// perturb performs a disturbance. What it creates is foreign.
func (u *users) perturb(step Step, record func(error)) error {
	u.world.Disturbing = true
	defer func() { u.world.Disturbing = false }()
	err := u.act(step, record)
	if err == nil {
		u.lessons.Disturbed = append(u.lessons.Disturbed, step.Name)
	}
	return err
}
