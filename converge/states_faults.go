// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/walk"
)

// faults changes a property and back, with each single fault at each point. The walk converges without faults, so that
// its states are those of new objects.
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
	order = slices.DeleteFunc(order, func(p acceptedProperty) bool { return len(p.specs) == 0 })
	for i, p := range order {
		if x.outOf(0.9) {
			x.leaveOut("no faults are injected while the other %s change", properties(len(order)-i))
			return nil
		}
		w := walk.Walk{p.context, p.specs[0], p.context}
		if failure := x.withFaults(w); failure != nil {
			return failure
		}
		x.cert.FaultProperties++
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
	f.Replay, f.walk = w.Encode(x.options.Seed, f.schedule), w.Describe()
	return &StatesFailure{Violation: f.Violation, Walk: f.walk, Faults: f.Faults, Replay: f.Replay, failure: f}
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
		for _, s := range p.specs {
			for _, change := range s.Changes {
				if slices.Equal(change.Path, p.Path) {
					tried = append(tried, change.Value.String())
				}
			}
		}
		details = append(details, fmt.Sprintf("%s: tried %s", path, strings.Join(tried, ", ")))
	}
	if len(ignored) == 0 {
		return nil
	}
	return &StatesFailure{Violation: Violation{
		Oracle: OracleEffect, Cause: CauseIgnored, About: ignored[0],
		Message: fmt.Sprintf(
			"no value changes the state: %s. Add values to Space.Values, or declare it in Space.Ignored with a reason",
			strings.Join(ignored, ", "),
		),
		Details: details,
	}}
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
