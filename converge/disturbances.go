// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// disturb performs the disturbances that the schedule has at a moment: before or when an action happens. It reports
// whether one has succeeded.
func (u *users) disturb(moment string, at inject.Site) bool {
	r, disturbed := u.run, false
	for _, step := range r.plan.Disturbances {
		s := at
		s.Act = step.name + " " + moment + " " + at.Act
		if r.faults.at(s, inject.SetOf(FaultDisturbance)) != FaultDisturbance {
			continue
		}
		p := r.faults.last
		if err := u.perturb(step, func(err error) {
			r.trace.fault(phrase.User, step.name+phrase.After(err), FaultDisturbance)
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
	r.world.disturbing = true
	defer func() { r.world.disturbing = false }()
	err := u.act(step, record)
	if err == nil {
		r.lessons.disturbed = append(r.lessons.disturbed, step.name)
	}
	return err
}

// disturbances checks the disturbances.
func (c *scenarioCheck) disturbances() {
	seen := map[string]bool{}
	for i, step := range c.Disturbances {
		switch {
		case step.do == nil:
			c.problem("Disturbances[%d] must be one action of users", i)
		case seen[step.name]:
			c.problem("Disturbances[%d]: another one is also called %q", i, step.name)
		}
		seen[step.name] = true
	}
}

// neverDisturbed lists the disturbances that have failed whenever they were tried.
func (p *plan) neverDisturbed() []string {
	var lines []string
	for _, step := range p.Disturbances {
		if !p.disturbed[step.name] {
			lines = append(lines, fmt.Sprintf("disturbance %q was not possible at any moment that was tried", step.name))
		}
	}
	return lines
}
