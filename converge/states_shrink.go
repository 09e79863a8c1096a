// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/search"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/walk"
	"trueup.dev/internal/memapi/specs"
)

// shrink finds the fewest and smallest changes that cause the same violation, which a number of writes cause.
func (x *statesSearch) shrink(w walk.Walk, writes int, v Violation) *StatesFailure {
	fails := func(shorter walk.Walk) bool {
		if len(shorter) == 0 {
			return false
		}
		found, failed := x.check(shorter)
		if !failed || found.Oracle != v.Oracle || found.About != v.About {
			return false
		}
		w, v = shorter, found
		return true
	}
	if writes < len(w) {
		fails(w[:writes])
	}
	search.Shrink(func() int { return w.Size() }, func() {
		for i := len(w) - 1; i >= 0; i-- {
			fails(slices.Delete(slices.Clone(w), i, i+1))
		}
		for _, path := range w.Paths() {
			if !fails(w.Without(path, -1)) {
				for i := range w {
					fails(w.Without(path, i))
				}
			}
			x.simplify(&w, path, fails)
		}
	})
	return x.record(w, v)
}

// simplify gives a property the simplest value.
func (x *statesSearch) simplify(w *walk.Walk, path string, fails func(walk.Walk) bool) {
	at := slices.IndexFunc(x.properties, func(p specs.Property) bool { return p.Path.String() == path })
	if at < 0 {
		return
	}
	simplest := specs.Change{Path: x.properties[at].Path, Value: x.properties[at].Values[0]}
	for i := range *w {
		if !slices.ContainsFunc((*w)[i].Changes, func(c specs.Change) bool {
			return c.Path.String() == path && c.String() != simplest.String()
		}) {
			continue
		}
		simpler := slices.Clone(*w)
		simpler[i] = simpler[i].With(simplest)
		fails(simpler)
	}
}

// record runs a walk again, for its timeline.
func (x *statesSearch) record(w walk.Walk, v Violation) *StatesFailure {
	plan, _ := x.walkPlan(w, x.admit(w))
	f := &Failure{Violation: v, schedule: inject.Schedule{}}
	plan.record(x.t, f)
	f.Violation = v
	return x.explain(w, f)
}

// replay runs one walk, and prints its whole timeline.
func (x *statesSearch) replay(encoded string) {
	x.t.Helper()
	f, err := x.rerun(encoded)
	if err != nil {
		x.t.Fatal(err)
	}
	fmt.Print(f, f.failure.FullTimeline()) // also without -v
	if f.failed() {
		x.t.Error(f.Violation)
		if line := page(x.t, f.failure); line != "" {
			x.t.Log(line)
		}
	}
}

// rerun runs one walk again. The result has no violation if it does not fail.
func (x *statesSearch) rerun(encoded string) (*StatesFailure, error) {
	w, seed, faults, err := walk.Decode(encoded)
	if err != nil {
		return nil, err
	}
	for _, s := range w {
		if s.Disturbance != "" && x.disturbance(s.Disturbance) == nil {
			return nil, fmt.Errorf("the scenario has no disturbance %q", s.Disturbance)
		}
	}
	x.plan.seed, x.options.Seed = seed, seed
	x.learn()
	if len(faults) == 0 {
		v, _ := x.check(w)
		return x.record(w, v), nil
	}
	plan := x.faultPlan(w)
	if o, ok := plan.refer(x.t); !ok {
		return nil, fmt.Errorf("without faults: %s", o.Violations[0])
	}
	f := &Failure{schedule: faults}
	plan.record(x.t, f)
	return x.explain(w, f), nil
}

// faults changes a property and back, with each single fault at each point. The walk converges without faults,
// therefore its states are the states of new objects.
func (x *statesSearch) faults() *StatesFailure {
	if slices.ContainsFunc(x.plan.Space.HistoryDependent, func(h HistoryDependent) bool { return h.Field == "" }) {
		x.cert.LeftOut = append(
			x.cert.LeftOut, "no faults are injected: whole objects depend on earlier specs, and a fault may recreate one",
		)
		return nil
	}
	order := slices.Clone(x.accepted)
	random := rand.New(rand.NewPCG(x.options.Seed, 6))
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	order = slices.DeleteFunc(order, func(p acceptedProperty) bool { return x.notRefused(p) == nil })
	for i, p := range order {
		if x.outOf(0.9) {
			x.leaveOut("no faults are injected while the other %s change", properties(len(order)-i))
			return nil
		}
		w := walk.Walk{p.context, *x.notRefused(p), p.context}
		if failure := x.withFaults(w); failure != nil {
			return failure
		}
		x.cert.FaultProperties++
	}
	return nil
}

// notRefused returns the first spec in which a property has another value and which the controller does not refuse, or
// nil. While a spec is refused, what a fault destroys may remain as it is.
func (x *statesSearch) notRefused(p acceptedProperty) *walk.Spec {
	for i, s := range p.specs {
		if !x.newObject(x.admit(walk.Walk{s})[0]).refused {
			return &p.specs[i]
		}
	}
	return nil
}

// referenceRuns is about the number of runs without faults before those with faults.
const referenceRuns = 10

// faultPlan returns the plan of a walk with faults.
func (x *statesSearch) faultPlan(w walk.Walk) *plan {
	plan, _ := x.walkPlan(w, x.admit(w))
	for _, h := range plan.Space.HistoryDependent {
		// An object that is recreated because of a fault has the state of a new one.
		plan.addMask(Mask{Object: h.Object, Field: h.Field})
	}
	return plan
}

func (x *statesSearch) withFaults(w walk.Walk) *StatesFailure {
	plan := x.faultPlan(w)
	report := plan.check(x.t, Options{Seed: x.options.Seed, SingleRequests: x.options.Requests / 10})
	x.cert.Faults += report.Certificate.Singles
	x.cert.FaultsLeft += report.Certificate.SinglesLeft
	if plan.reference != nil {
		x.spent += (report.Certificate.Schedules + referenceRuns) * x.plan.length(&plan.reference.Outcome)
	}
	if report.Failure == nil {
		return nil
	}
	return x.explain(w, report.Failure)
}

// explain describes the failure of a walk.
func (x *statesSearch) explain(w walk.Walk, f *Failure) *StatesFailure {
	f.Replay, f.walk = w.Encode(x.options.Seed, f.schedule), w.Describe(x.content)
	return &StatesFailure{
		Violation: f.Violation, Walk: f.walk, Faults: f.Faults, Replay: f.Replay, Hint: f.Hint, failure: f,
	}
}

// effects fails if properties have no effect.
func (x *statesSearch) effects() *StatesFailure {
	var ignored, details []string
	for _, p := range x.accepted {
		path := p.Path.String()
		if x.affecting[path] || len(p.specs) == 0 || x.mayBeIgnored(path) || x.hasEffectBelow(path) {
			continue
		}
		ignored = append(ignored, path)
		var tried []string
		fails := ""
		for _, s := range p.specs {
			for _, change := range s.Changes {
				if slices.Equal(change.Path, p.Path) {
					tried = append(tried, change.Value.String())
				}
			}
			if err := x.newObject(x.admit(walk.Walk{s})[0]).err; err != nil {
				fails = failsWith(err)
			}
		}
		details = append(details, fmt.Sprintf("%s: tried %s%s", path, strings.Join(tried, ", "), fails))
	}
	if len(ignored) == 0 {
		return nil
	}
	f := &Failure{Violation: Violation{
		Oracle: OracleEffect, Cause: CauseIgnored, About: ignored[0],
		Message: fmt.Sprintf(
			"no value changes the state: %s. Add values to Space.Values, or declare it in Space.Ignored with a reason",
			strings.Join(ignored, ", "),
		),
		Details: details,
	}}
	f.explainMistake()
	return &StatesFailure{Violation: f.Violation, Hint: f.Hint}
}

func (x *statesSearch) mayBeIgnored(path string) bool {
	return slices.ContainsFunc(phrase.SortedKeys(x.plan.Space.Ignored), func(ignored string) bool {
		return state.Within(path, ignored)
	})
}

// hasEffectBelow reports whether a part of a property has an effect.
func (x *statesSearch) hasEffectBelow(path string) bool {
	return slices.ContainsFunc(phrase.SortedKeys(x.affecting), func(other string) bool {
		return x.affecting[other] && state.Within(other, path)
	})
}
