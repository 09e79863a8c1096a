// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"testing"
	"time"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/search"
	"trueup.dev/internal/engine/calledby"
)

// check searches for a failure, shrinks it, and describes it.
func (p *plan) check(t *testing.T, o Options) *Report {
	calledby.Controller() // outside of any bubble
	report := &Report{}
	if found := explore(t, p, o, &report.Certificate); found != nil {
		report.Failure = p.shrunk(t, found)
		report.Failure.tried = &report.Certificate
	}
	return report
}

// explore searches for a schedule with a violation, and returns the first one. The order, and so the result, depends on
// nothing but the scenario and the options, unless a budget ends the search.
func explore(t *testing.T, p *plan, o Options, cert *Certificate) (found *search.Failure[inject.Schedule]) {
	defer search.Tune(t)()
	x := p.newSearch(t, o)
	cert.Programs = len(p.programs)
	defer func() {
		cert.count(x, found != nil)
		cert.LeftOut = p.leftOut()
		if found == nil {
			cert.LeftOut = append(cert.LeftOut, p.neverDisturbed()...)
		}
		cert.Advice = append(cert.Advice, p.unusedRules()...)
	}()
	reference, ok := p.refer(t)
	if !ok {
		return x.Failed(inject.Schedule{}, &reference)
	}
	cert.Reconciles, cert.Idle = reference.Reconciles, reference.NoOps
	x.Reference, x.Length = reference.Points, p.length(&reference)
	x.Limits = x.For(x.Length)
	if p.recorded != nil {
		cert.Recorded = &Recorded{}
		if found = p.repeatRecording(t, x, cert.Recorded); found != nil {
			return found
		}
	}
	return search.First(x.Phases()...)
}

// newSearch returns a search for schedules.
func (p *plan) newSearch(t *testing.T, o Options) *search.Schedules {
	return &search.Schedules{
		Limits: search.Limits(o), Test: t.Name(), Begin: time.Now(),
		Run: func(s inject.Schedule) judge.Outcome { return p.try(t, s, nil) },
	}
}

// count fills in what a search has tried.
func (c *Certificate) count(x *search.Schedules, failed bool) {
	n := &x.Counts
	c.Seed, c.Points, c.Enumerated, c.Pruned, c.Singles, c.SinglesLeft = x.Seed, n.Points, n.Enumerated, n.Pruned,
		n.Singles, n.SinglesLeft
	c.Recoveries, c.RecoveriesLeft, c.Pairs, c.PairsInAll, c.Random = n.Recoveries, n.RecoveriesLeft, n.Pairs,
		n.PairsInAll, n.Random
	c.Schedules, c.Advice, c.Elapsed, c.failed = n.Runs, n.Advice, time.Since(x.Begin), failed
}

// length is the length of a run in requests. Starting controllers takes as long as twenty.
func (p *plan) length(reference *judge.Outcome) int {
	length := max(reference.Requests, 1)
	for _, program := range p.programs {
		if program.Setup != nil {
			length += 20
		}
	}
	return length
}

// shrunk shrinks a failure, and describes it.
func (p *plan) shrunk(t *testing.T, found *search.Failure[inject.Schedule]) *Failure {
	search.ShrinkSchedule(found)
	f := &Failure{Violation: Violation(found.Violation), schedule: found.Candidate, Shrinks: found.Shrinks}
	p.record(t, f)
	return f
}

// record runs the schedule of a failure again, for its timeline.
func (p *plan) record(t *testing.T, f *Failure) judge.Outcome {
	log := &explain.Timeline{}
	o := p.try(t, f.schedule, log)
	f.log = log.Log
	if v, ok := o.First(); ok {
		f.Violation = Violation(v)
	}
	p.explain(t, f)
	return o
}

// explain fills in the description of a failure.
func (p *plan) explain(t *testing.T, f *Failure) {
	f.test, f.leftOut = t.Name(), p.leftOut()
	for _, d := range f.schedule {
		f.Faults = append(f.Faults, d.String())
	}
	f.Replay = p.encode(f.schedule)
	if p.upgrade != nil {
		p.explainUpgrade(t, f)
		return
	}
	f.explainMistake()
}
