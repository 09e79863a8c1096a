// SPDX-License-Identifier: Apache-2.0

package converge

import "fmt"

// disturbances checks the disturbances.
func (c *scenarioCheck) disturbances() {
	seen := map[string]bool{}
	for i, step := range c.Disturbances {
		switch {
		case step.plain.Do == nil:
			c.problem("Disturbances[%d] must be one action of users", i)
		case seen[step.plain.Name]:
			c.problem("Disturbances[%d]: another one is also called %q", i, step.plain.Name)
		}
		seen[step.plain.Name] = true
	}
}

// neverDisturbed lists the disturbances that have failed whenever they were tried.
func (p *plan) neverDisturbed() []string {
	var lines []string
	for _, step := range p.Disturbances {
		if !p.disturbed[step.plain.Name] {
			lines = append(lines, fmt.Sprintf("disturbance %q was not possible at any moment that was tried", step.plain.Name))
		}
	}
	return lines
}
