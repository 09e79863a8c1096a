// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/converge/internal/access"
	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/sim"
	"trueup.dev/converge/internal/state"
)

// knowledge is what runs have taught about a plan, for further runs.
type knowledge struct {
	// reference is the run without faults, or nil before it.
	reference *judge.Reference
	// random are the names that contain random letters.
	random state.RandomNames
	// waits is set if primary objects become ready only when their workloads are available.
	waits bool
	// probesRoles is set while runs find out which rules of roles are missing.
	probesRoles bool
	// read are the kinds that programs read from caches. The caches exist from the start: other controllers of the same
	// process may use them.
	read map[*sim.Program][]schema.GroupVersionKind
	// access is what programs have used of their roles.
	access map[*sim.Program]*access.Usage
	// converter is the conversion webhook that Setup registered last.
	converter http.Handler
	// disturbed are the names of the disturbances that were possible in a run.
	disturbed map[string]bool
	// uncalledPaths are the paths of webhooks that no configuration names.
	uncalledPaths map[*sim.Program][]string
	// failedVersion is the version of an upgrade whose run without faults has failed, or nil.
	failedVersion *plan
}

func newKnowledge() knowledge {
	return knowledge{
		read: map[*sim.Program][]schema.GroupVersionKind{}, access: map[*sim.Program]*access.Usage{},
		disturbed: map[string]bool{}, uncalledPaths: map[*sim.Program][]string{},
	}
}

// remember adds what a run has taught to what is known.
func (p *plan) remember(l sim.Lessons) {
	for program, used := range l.Access {
		if p.access[program] == nil {
			p.access[program] = &access.Usage{}
		}
		p.access[program].Add(used)
	}
	maps.Copy(p.uncalledPaths, l.Uncalled)
	for _, name := range l.Disturbed {
		p.disturbed[name] = true
	}
}

// execute executes a schedule.
func (p *plan) execute(t *testing.T, s inject.Schedule, v sim.Variation, log *explain.Timeline) judge.Outcome {
	m := p.machine()
	o, learned := sim.Run(t, m, s, v, log)
	p.remember(learned)
	for i, version := range p.sequence() {
		if converter := learned.Converters[m.Versions[i]]; converter != nil {
			version.converter = converter
		}
	}
	return o
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

// unusedRules returns a line for each role that allows something that no run has used. It leaves out what runs do not
// do: to record events, to elect a leader, to set owner references that block deletions, and to review access.
func (p *plan) unusedRules() []string {
	var lines []string
	for _, program := range p.programs {
		used := p.access[program]
		if used == nil {
			used = &access.Usage{}
		}
		for i := range program.Roles {
			role := &program.Roles[i]
			if found := role.Unused(used); len(found) > 0 {
				lines = append(lines, fmt.Sprintf("%s %s: no run has used %s", role.Kind, role.Name, strings.Join(found, ", ")))
			}
		}
	}
	return lines
}

// uncalled returns the paths of webhooks that no configuration names.
func (p *plan) uncalled() []string {
	var paths []string
	for _, program := range p.programs {
		paths = append(paths, p.uncalledPaths[program]...)
	}
	return paths
}
