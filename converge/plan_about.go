// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/converge/internal/access"
	"trueup.dev/converge/internal/sim"
	"trueup.dev/converge/internal/state"
)

// isActor reports whether a client is that of an actor.
func (p *plan) isActor(client string) bool {
	return slices.ContainsFunc(p.actors, func(a sim.Actor) bool { return a.Name == client })
}

// isProgram reports whether a client is that of a process.
func (p *plan) isProgram(client string) bool {
	for _, program := range p.programs {
		if program.Client == client {
			return true
		}
	}
	return false
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

// outside returns the content of the external systems. It is empty without Scenario.Outside.
func (p *plan) outside() (state.Outside, error) {
	if p.Outside == nil {
		return state.Outside{}, nil
	}
	return state.OutsideOf(p.Outside())
}

// shownVersions returns the versions in which kinds are compared and shown in timelines: those that the controller, or
// another part of the scenario, works with.
func (p *plan) shownVersions() map[schema.GroupKind]string {
	var shown map[schema.GroupKind]string
	show := func(kind schema.GroupVersionKind) {
		if k, ok := p.registry.For(kind); !ok || k.Versions == nil || !k.Versions.Several() {
			return
		}
		if shown == nil {
			shown = map[schema.GroupKind]string{}
		}
		if _, found := shown[kind.GroupKind()]; !found {
			shown[kind.GroupKind()] = kind.Version
		}
	}
	show(p.primary)
	for _, program := range p.programs {
		for _, kind := range program.Owns {
			show(kind)
		}
		for _, w := range program.Watches {
			show(w.Kind)
		}
	}
	for _, actor := range p.actors {
		show(actor.Kind)
	}
	return shown
}
