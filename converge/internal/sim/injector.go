// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/world"
)

// injector decides at each injection point whether a fault of the schedule is injected there. It records all points,
// for further schedules. It does not know what a fault does.
type injector struct {
	enabled  inject.Set
	schedule inject.Schedule
	world    *world.World
	// allowed returns the faults without those that exceptions disable at a site.
	allowed func(s inject.Site, step int, faults inject.Set) inject.Set
	trace   *trace
	// off is set while all objects are reconciled again as a check.
	off bool

	visits map[inject.Site]int
	// points are the injection points of the run, in their order.
	points []inject.Injectable
	// injected counts the faults of the schedule that were injected, and last is the point of the last one.
	injected int
	last     inject.Point
	// starts are the numbers of points at the start of the first processes of the programs, the second ones and so on.
	starts []int
}

// none reports whether the schedule has no faults.
func (i *injector) none() bool { return len(i.schedule) == 0 }

// processStarted records the start of a process.
func (i *injector) processStarted(number int) {
	if number > len(i.starts) {
		i.starts = append(i.starts, len(i.points))
	}
}

func newInjector(m *Machine, s inject.Schedule, w *world.World, t *trace) injector {
	return injector{
		enabled: m.Faults, schedule: s, world: w, allowed: m.Allowed, trace: t,
		visits: make(map[inject.Site]int, m.Points), points: make([]inject.Injectable, 0, m.Points),
	}
}

// at records an injection point, and returns the fault to inject there, or "".
func (i *injector) at(s inject.Site, faults inject.Set) inject.Fault {
	if i.world.Over || i.off {
		return ""
	}
	i.visits[s]++
	p := inject.Point{Site: s, N: i.visits[s]}
	if faults = i.allowed(s, i.trace.Step, faults&i.enabled); faults == 0 {
		return ""
	}
	i.points = append(
		i.points, inject.Injectable{Point: p, Faults: faults, Version: i.world.Version(), Step: i.trace.Step},
	)
	fault := i.schedule.At(p)
	if fault == "" || !faults.Has(fault) {
		return ""
	}
	i.injected++
	i.last = p
	i.trace.Hit(p)
	return fault
}

// withdraw records that the fault at a point was not injected after all: the other client could not perform its write.
func (i *injector) withdraw(p inject.Point) {
	i.injected--
	i.trace.Missed(p)
}

// onlyRepeats reports whether the schedule only has faults after which a cache starts again or repeats its objects.
// These do not undo any work.
func (i *injector) onlyRepeats() bool {
	for _, d := range i.schedule {
		if !inject.RepeatFaults.Has(d.Fault) {
			return false
		}
	}
	return true
}
