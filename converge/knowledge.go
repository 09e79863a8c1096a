// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/access"
	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/sim"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
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
	for i, version := range m.Versions {
		if converter := learned.Converters[version]; converter != nil {
			p.of(i + 1).converter = converter
		}
	}
	return o
}

// machine returns what a run executes.
func (p *plan) machine() *sim.Machine {
	m := &sim.Machine{
		Scheme: p.Scheme, Registry: p.registry, Shown: p.shown, ManagedFields: p.ManagedFields, Actors: p.actors,
		Given: p.Given, Steps: userSteps(p.Steps), Disturbances: userSteps(p.Disturbances), Reset: p.Reset, Faults: p.faults,
		Allowed: p.allowed, CanSkip: p.canSkip, Selectors: p.selectors, OwnWrites: p.Consistency == ReadYourWrites,
		Gate: p.Consistency == Gate, Gated: append([]client.Object{p.For}, p.Owns...), Patience: p.Patience, Random: p.random,
		Judged: p.judged(),
	}
	for _, watch := range p.Watches {
		m.Gated = append(m.Gated, watch.Object)
	}
	if p.Outside != nil {
		m.ReadOutside = p.outside
	}
	if p.reference != nil {
		m.Points = len(p.reference.Points) * 5 / 4 // most faults add a few
	}
	if p.upgrade == nil {
		m.Versions = []*sim.Version{p.asVersion()}
		return m
	}
	alone := make([]*sim.Version, len(p.upgrade.alone))
	for i, plan := range p.upgrade.alone {
		alone[i] = plan.asVersion()
	}
	for _, next := range p.upgrade.versions {
		m.Versions = append(m.Versions, alone[slices.Index(p.upgrade.alone, next)])
	}
	return m
}

// asVersion returns the version of the controller that a plan has.
func (p *plan) asVersion() *sim.Version {
	return &sim.Version{
		Name: p.version, Primary: p.primary, Registry: p.registry, Applier: p.applier, Programs: p.programs, Read: p.read,
		Converter: p.converter, UsualConverter: p.usualConverter,
	}
}

// judged returns what the oracles know of a scenario.
func (p *plan) judged() *judge.Case {
	c := &judge.Case{
		Off: p.Off, Excepts: p.excepts, IsProgram: p.isProgram, IsActor: p.isActor, Reader: p.reader(), Strict: p.Strict,
		MaxReconciles: p.MaxReconciles, Patience: p.Patience, LastStep: len(p.Steps) - 1, Records: p.recordsReference(),
	}
	if p.upgrade == nil {
		c.Versions = []*judge.Version{p.judgedVersion()}
		c.Sequence = c.Versions
		return c
	}
	for _, alone := range p.upgrade.alone {
		c.Versions = append(c.Versions, alone.judgedVersion())
	}
	for _, next := range p.upgrade.versions {
		c.Sequence = append(c.Sequence, c.Versions[slices.Index(p.upgrade.alone, next)])
	}
	return c
}

// judgedVersion returns what the oracles know of the program.
func (p *plan) judgedVersion() *judge.Version {
	v := &judge.Version{Name: p.version, Primary: p.primary, Reference: p.reference, Waits: p.waits}
	if p.Desired != nil {
		v.Desired = func(w *world.World) error { return desired(p.Desired, w) }
	}
	return v
}
