// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/search"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/walk"
)

// statesSearch is the search for a walk with a violation.
type statesSearch struct {
	search.Walks
	*specSpace

	t       *testing.T
	options StatesOptions
	begin   time.Time
	// spent are the requests of all runs.
	spent int
	// news are the references, by spec.
	news map[string]*newObject
	// transitions are the changes from one stored spec to another.
	transitions map[[2]string]bool
	// firstReady is set if the first object becomes Ready, and harmless is what its status has then that would be a
	// refusal otherwise. firstWarned is set if there is a warning about it.
	firstReady, firstWarned bool
	harmless                []string
	// halves are the half changes that were reported.
	halves map[string]bool
	cert   StatesCertificate
}

// run executes the plan of a walk.
func (x *statesSearch) run(p *plan) judge.Outcome {
	o := p.execute(x.t, nil, p.usual(), nil)
	x.cert.Runs++
	x.spent += p.length(&o)
	return o
}

// outOf reports whether a share of the requests, or of the time, is used up.
func (x *statesSearch) outOf(share float64) bool {
	if x.options.Budget > 0 && time.Since(x.begin) > time.Duration(share*float64(x.options.Budget)) {
		return true
	}
	return x.options.Requests > 0 && float64(x.spent) > share*float64(x.options.Requests)
}

// search runs all phases, until one of them finds a failure.
func (x *statesSearch) search() *StatesReport {
	defer search.Tune(x.t)()
	x.LeftOut = slices.Concat(x.plan.leftOut(), x.leftOut)
	x.learn()
	of := func(phase func() *search.Failure[walk.Walk]) func() *StatesFailure {
		return func() *StatesFailure {
			if found := phase(); found != nil {
				return x.record(found.Candidate, found.Violation)
			}
			return nil
		}
	}
	failure := search.First(
		of(x.Start), of(x.Single), x.metadata, of(x.Disturb), of(x.Generated), of(x.PairsOfProperties), x.effects, x.faults,
		of(x.AtRandom),
	)
	if failure == nil {
		x.LeftOut = append(x.LeftOut, x.plan.neverDisturbed()...)
	}
	cert := x.cert
	cert.Seed, cert.Properties, cert.Changed, cert.Values = x.options.Seed, len(x.properties), x.Changed, x.Values
	cert.Rejected, cert.Specs, cert.Transitions = x.Rejected, len(x.news), len(x.transitions)
	cert.Pairs, cert.PairsInAll, cert.Walks = x.Pairs, x.PairsInAll, x.Random
	cert.LeftOut, cert.Elapsed = x.LeftOut, time.Since(x.begin)
	return &StatesReport{Failure: failure, Certificate: cert}
}

// learn finds out which kinds are read from caches, which names are random, and what the status of the first object is.
func (x *statesSearch) learn() {
	plan, settles := x.walkPlan(walk.Walk{{}}, make([]stored, 1))
	x.plan.findRead(func() judge.Outcome { return x.run(plan) })
	one := x.run(plan)
	for plan.random.Find(one.Settled, x.run(plan).Settled) { // names that contain random ones are found next
		one = x.run(plan)
	}
	x.learnStatus(&one, settles[0])
}

// stores returns the key of the spec that the API server stores, unless it rejects it.
func (x *statesSearch) stores(s walk.Spec) (key string, ok bool) {
	answer := x.admit(walk.Walk{s})[0]
	return answer.key, answer.rejected == nil
}

// accepts does that too, but for a spec that a webhook may reject.
func (x *statesSearch) accepts(s walk.Spec) (key string, ok bool) {
	answer := x.admit(walk.Walk{s})[0]
	return answer.key, answer.rejected == nil && x.newObject(answer).rejected == nil
}

// affects reports whether two specs lead to different states, apart from the spec itself.
func (x *statesSearch) affects(one, other walk.Spec) bool {
	a, b := x.admit(walk.Walk{one})[0], x.admit(walk.Walk{other})[0]
	return a.rejected == nil && b.rejected == nil && len(x.effectsOf(x.newObject(a), x.newObject(b))) > 0
}

// record runs a walk again, for its timeline.
func (x *statesSearch) record(w walk.Walk, v finding.Violation) *StatesFailure {
	plan, _ := x.walkPlan(w, x.admit(w))
	f := &Failure{Violation: Violation(v), schedule: inject.Schedule{}}
	plan.record(x.t, f)
	f.Violation = Violation(v)
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
		v, _, _ := x.checkWrites(w)
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
		x.LeftOut = append(
			x.LeftOut, "no faults are injected: whole objects depend on earlier specs, and a fault may recreate one",
		)
		return nil
	}
	order := slices.Clone(x.Changeable)
	random := rand.New(rand.NewPCG(x.options.Seed, 6))
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	order = slices.DeleteFunc(order, func(p search.Property) bool { return x.notRefused(p) == nil })
	for i, p := range order {
		if x.outOf(0.9) {
			x.LeaveOut("no faults are injected while the other %s change", phrase.Plural(len(order)-i, "property"))
			return nil
		}
		w := walk.Walk{p.Context, *x.notRefused(p), p.Context}
		if failure := x.withFaults(w); failure != nil {
			return failure
		}
		x.cert.FaultProperties++
	}
	return nil
}

// notRefused returns the first spec in which a property has another value and which the controller does not refuse, or
// nil. While a spec is refused, what a fault destroys may remain as it is.
func (x *statesSearch) notRefused(p search.Property) *walk.Spec {
	for i, s := range p.Specs {
		if !x.newObject(x.admit(walk.Walk{s})[0]).refused {
			return &p.Specs[i]
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
	for _, p := range x.Changeable {
		path := p.Path.String()
		if x.Affecting[path] || len(p.Specs) == 0 || x.mayBeIgnored(path) || x.hasEffectBelow(path) {
			continue
		}
		ignored = append(ignored, path)
		var tried []string
		fails := ""
		for _, s := range p.Specs {
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
	return slices.ContainsFunc(phrase.SortedKeys(x.Affecting), func(other string) bool {
		return x.Affecting[other] && state.Within(other, path)
	})
}
