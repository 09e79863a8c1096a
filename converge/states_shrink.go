// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/search"
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
