// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/sim"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
)

// machine returns what a run executes.
func (p *plan) machine() *sim.Machine {
	m := &sim.Machine{
		Scheme: p.Scheme, Registry: p.registry, Shown: p.shown, ManagedFields: p.ManagedFields, Actors: p.actors,
		Given: p.Given, Steps: userSteps(p.Steps), Disturbances: userSteps(p.Disturbances), Reset: p.Reset, Faults: p.faults,
		Allowed: p.allowed, CanSkip: p.canSkip, Selectors: p.selectors, OwnWrites: p.Consistency == ReadYourWrites,
		Gate: p.Consistency == Gate, Gated: append([]client.Object{p.For}, p.Owns...), Patience: p.Patience, Random: p.random,
		Judged: &judge.Case{
			Off: p.Off, Excepts: p.excepts, IsProgram: p.isProgram, IsActor: p.isActor, Reader: p.reader(), Strict: p.Strict,
			MaxReconciles: p.MaxReconciles, Patience: p.Patience, LastStep: len(p.Steps) - 1, Records: p.recordsReference(),
			Assigned: map[string]func(client.Object) bool{},
		},
	}
	for _, program := range p.programs {
		if program.Assigned != nil {
			m.Judged.Assigned[program.Client] = program.Assigned
		}
	}
	for _, watch := range p.Watches {
		m.Gated = append(m.Gated, watch.Object)
	}
	if p.Outside != nil {
		m.ReadOutside = func() (state.Outside, error) { return state.OutsideOf(p.Outside()) }
	}
	if p.reference != nil {
		m.Points = len(p.reference.Points) * 5 / 4 // most faults add a few
	}
	known := map[*plan]*sim.Version{}
	for _, alone := range p.alone() {
		known[alone] = alone.asVersion()
		m.Judged.Versions = append(m.Judged.Versions, known[alone].Version)
	}
	for _, next := range p.sequence() {
		m.Versions = append(m.Versions, known[next])
		m.Judged.Sequence = append(m.Judged.Sequence, known[next].Version)
	}
	return m
}

// asVersion returns the version of the controller that a plan has.
func (p *plan) asVersion() *sim.Version {
	v := &sim.Version{
		Version:  &judge.Version{Name: p.version, Primary: p.primary, Reference: p.reference, Waits: p.waits},
		Registry: p.registry, Applier: p.applier, Programs: p.programs, Read: p.read, Converter: p.converter,
		UsualConverter: p.usualConverter,
	}
	if p.Desired != nil {
		v.Desired = func(w *world.World) error { return desired(p.Desired, w) }
	}
	return v
}

// isActor reports whether a client is the client of an actor.
func (p *plan) isActor(client string) bool {
	return slices.ContainsFunc(p.actors, func(a sim.Actor) bool { return a.Name == client })
}

// isProgram reports whether a client is the client of a process.
func (p *plan) isProgram(client string) bool {
	return slices.ContainsFunc(p.programs, func(program *sim.Program) bool { return program.Client == client })
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
