// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/search"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/walk"
	"trueup.dev/internal/memapi/specs"
)

// statesSearch is the search for a walk with a violation.
type statesSearch struct {
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
	// affecting are the properties that have an effect.
	affecting map[string]bool
	// accepted are the values of properties that the API server accepts.
	accepted []acceptedProperty
	// foreign are a label and an annotation that users add.
	foreign acceptedProperty
	// firstReady is set if the first object becomes Ready, and harmless is what its status has then that would be a
	// refusal otherwise. firstWarned is set if there is a warning about it.
	firstReady, firstWarned bool
	harmless                []string
	// halves are the half changes that were reported.
	halves map[string]bool
	cert   StatesCertificate
}

// acceptedProperty is a property with the specs in which it has another value.
type acceptedProperty struct {
	specs.Property

	// context is the spec in which the parent of the property is set.
	context walk.Spec
	// specs are those with a meaningful value, and doubtful the others.
	specs, doubtful []walk.Spec
	// rejected is a spec that the API server rejects, or nil.
	rejected *walk.Spec
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
	report := &StatesReport{}
	x.cert.Seed, x.cert.LeftOut = x.options.Seed, slices.Concat(x.plan.leftOut(), x.leftOut)
	x.learn()
	report.Failure = search.First(
		x.start, x.single, x.metadata, x.disturbances, x.generated, x.pairs, x.effects, x.faults, x.random,
	)
	x.cert.Specs, x.cert.Transitions = len(x.news), len(x.transitions)
	if report.Failure == nil {
		x.cert.LeftOut = append(x.cert.LeftOut, x.plan.neverDisturbed()...)
	}
	x.cert.Elapsed = time.Since(x.begin)
	report.Certificate = x.cert
	return report
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

// try checks a walk, and returns the failure with the fewest changes.
func (x *statesSearch) try(w walk.Walk) *StatesFailure {
	if v, writes, failed := x.checkWrites(w); failed {
		return x.shrink(w, writes, v)
	}
	return nil
}

// start checks the object as it is.
func (x *statesSearch) start() *StatesFailure { return x.try(walk.Walk{{}, {Deleted: true}, {}}) }

// single changes each property on its own: first all values in a row, then each value and back.
func (x *statesSearch) single() *StatesFailure {
	x.cert.Properties = len(x.properties)
	x.acceptValues()
	for _, p := range x.accepted {
		if failure := x.try(p.inARow()); failure != nil {
			return failure
		}
		x.observe(p)
	}
	for i, p := range x.accepted {
		if x.outOf(0.5) {
			x.leaveOut("the values of %s are changed in a row, and not each one back", properties(len(x.accepted)-i))
			break
		}
		if failure := x.try(p.backAndForth()); failure != nil {
			return failure
		}
	}
	return nil
}

// leaveOut records what is not tried because the search is limited.
func (x *statesSearch) leaveOut(format string, args ...any) {
	x.cert.LeftOut = append(x.cert.LeftOut, fmt.Sprintf(format, args...)+": -converge.budget is for more")
}

// acceptValues asks the API server which values are valid.
func (x *statesSearch) acceptValues() {
	base := x.admit(walk.Walk{{}})[0].key
	for _, property := range x.properties {
		p := acceptedProperty{Property: property, context: walk.Spec{}.With(property.Context...)}
		seen := map[string]bool{base: true}
		if len(property.Context) > 0 {
			set := x.admit(walk.Walk{p.context})[0]
			if set.rejected != nil {
				x.cert.LeftOut = append(
					x.cert.LeftOut, fmt.Sprintf("%s is not changed: a sample of its parent is rejected", property.Path),
				)
				continue
			}
			seen[set.key] = true
		}
		for _, value := range property.Values {
			s := p.context.With(specs.Change{Path: property.Path, Value: value})
			answer := x.admit(walk.Walk{s})[0]
			switch {
			case answer.rejected != nil, x.newObject(answer).rejected != nil:
				x.cert.Rejected++
				p.rejected = &s
				continue
			case seen[answer.key]:
				continue // a default, or the same in another form
			case value.Doubtful:
				p.doubtful = append(p.doubtful, s)
			default:
				p.specs = append(p.specs, s)
			}
			seen[answer.key] = true
			x.cert.Values++
		}
		if len(p.specs)+len(p.doubtful) == 0 {
			x.cert.LeftOut = append(x.cert.LeftOut, fmt.Sprintf("%s is not changed: no other value is accepted", property.Path))
			continue
		}
		x.cert.Changed++
		x.accepted = append(x.accepted, p)
	}
}

// inARow changes one property to all values one after the other, and back. The object is deleted with another value.
func (p *acceptedProperty) inARow() walk.Walk {
	values := slices.Concat(p.specs, p.doubtful)
	w := walk.Walk{{}}
	if len(p.context.Changes) > 0 {
		w = append(w, p.context)
	}
	w = append(w, values...)
	if p.rejected != nil {
		w = append(w, *p.rejected)
	}
	return append(w, walk.Spec{}, values[0], walk.Spec{Deleted: true})
}

// backAndForth changes one property to each value and back, the first one twice, and recreates the object.
func (p *acceptedProperty) backAndForth() walk.Walk {
	w := walk.Walk{{}}
	if len(p.context.Changes) > 0 {
		w = append(w, p.context)
	}
	back := w[len(w)-1]
	values := slices.Concat(p.specs, p.doubtful)
	for _, s := range values {
		w = append(w, s, back)
	}
	return append(w, values[0], walk.Spec{}, walk.Spec{Deleted: true}, values[0], walk.Spec{Deleted: true})
}

// observe records whether a property has an effect.
func (x *statesSearch) observe(p acceptedProperty) {
	without := x.newObject(x.admit(walk.Walk{p.context})[0])
	for _, s := range p.specs {
		if x.affects(without, x.newObject(x.admit(walk.Walk{s})[0])) {
			x.affecting[p.Path.String()] = true
			x.adviseZero(p)
			return
		}
	}
}

// disturbances performs each disturbance on a new object, and before and after a change of each property.
func (x *statesSearch) disturbances() *StatesFailure {
	for _, step := range x.plan.Disturbances {
		begin := walk.Walk{{}}.Disturbed(step.plain.Name)
		if failure := x.try(append(slices.Clip(begin), walk.Spec{Deleted: true}, walk.Spec{})); failure != nil {
			return failure
		}
		for i, p := range x.accepted {
			if x.outOf(0.6) {
				x.leaveOut("%q is not performed while %s change", step.plain.Name, properties(len(x.accepted)-i))
				break
			}
			if len(p.specs) == 0 {
				continue
			}
			w := append(slices.Clip(begin), p.context, p.specs[0]).Disturbed(step.plain.Name)
			if failure := x.try(append(w, p.context, walk.Spec{}, walk.Spec{Deleted: true})); failure != nil {
				return failure
			}
		}
	}
	return nil
}

// generated changes the whole spec.
func (x *statesSearch) generated() *StatesFailure {
	if x.plan.Space.Generate == nil {
		return nil
	}
	w := walk.Walk{{}}
	for n := range uint64(30) {
		w = append(w, x.generate(rand.New(rand.NewPCG(x.options.Seed, n<<8|4))))
		if len(w) == 4 {
			if failure := x.try(append(w, walk.Spec{})); failure != nil {
				return failure
			}
			w = walk.Walk{w[3]}
		}
	}
	return nil
}

func (x *statesSearch) generate(random *rand.Rand) walk.Spec {
	return x.specOfObject(x.plan.Space.Generate(random))
}

// pairs changes two properties.
func (x *statesSearch) pairs() *StatesFailure {
	var pairs [][2]int
	for a := range x.accepted {
		for b := range a {
			one, other := x.accepted[a], x.accepted[b]
			if len(one.specs) > 0 && len(other.specs) > 0 && !state.Within(one.Path.String(), other.Path.String()) &&
				!state.Within(other.Path.String(), one.Path.String()) {
				pairs = append(pairs, [2]int{b, a})
			}
		}
	}
	x.cert.PairsInAll = len(pairs)
	random := rand.New(rand.NewPCG(x.options.Seed, 5))
	random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	for _, pair := range pairs {
		if x.outOf(0.65) {
			return nil
		}
		one, other := x.accepted[pair[0]], x.accepted[pair[1]]
		a, b := one.specs[random.IntN(len(one.specs))], other.specs[random.IntN(len(other.specs))]
		both := a.With(b.Changes...)
		if failure := x.try(walk.Walk{{}, a, both, b, {}, both, {Deleted: true}, b}); failure != nil {
			return failure
		}
		x.cert.Pairs++
		x.observePair(one, both, b)
		x.observePair(other, both, a)
	}
	return nil
}

// observePair records whether a property has an effect while another one has another value: it may depend on that one.
func (x *statesSearch) observePair(p acceptedProperty, both, without walk.Spec) {
	if x.affecting[p.Path.String()] || len(p.context.Changes) > 0 {
		return
	}
	one, other := x.admit(walk.Walk{without})[0], x.admit(walk.Walk{both})[0]
	if one.rejected == nil && other.rejected == nil {
		x.affecting[p.Path.String()] = x.affects(x.newObject(one), x.newObject(other))
	}
}

// random tries random walks.
func (x *statesSearch) random() *StatesFailure {
	if len(x.accepted) == 0 {
		return nil
	}
	return search.Each(func(yield func(walk.Walk) bool) {
		for n := range x.options.Walks * len(x.accepted) {
			if !yield(x.randomWalk(rand.New(rand.NewPCG(x.options.Seed, uint64(n)<<8|3)))) {
				return
			}
		}
	}, func() bool { return x.outOf(1) }, x.try, &x.cert.Walks)
}

func (x *statesSearch) randomWalk(random *rand.Rand) walk.Walk {
	w := walk.Walk{{}}
	now := walk.Spec{}
	all := x.withMetadata()
	for range 4 + random.IntN(5) {
		if d := x.plan.Disturbances; len(d) > 0 && random.IntN(4) == 0 {
			w = w.Disturbed(d[random.IntN(len(d))].plain.Name)
			continue
		}
		p := all[random.IntN(len(all))]
		values := slices.Concat(p.specs, p.specs, p.doubtful)
		switch choice := random.IntN(10); {
		case choice == 0 && !w[len(w)-1].Deleted:
			w = append(w, walk.Spec{Deleted: true})
			continue
		case choice == 1:
			now = walk.Spec{}
		case choice == 2 && p.rejected != nil:
			w = append(w, now.With(p.rejected.Changes...))
			continue
		case choice <= 4 && len(now.Changes) > 0:
			at := random.IntN(len(now.Changes))
			now = walk.Spec{Changes: slices.Delete(slices.Clone(now.Changes), at, at+1)}
		case choice == 5 && x.plan.Space.Generate != nil:
			now = x.generate(random)
		default:
			now = now.With(values[random.IntN(len(values))].Changes...)
		}
		w = append(w, now)
	}
	return w
}
