// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"trueup.dev/internal/specs"
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
	cert     StatesCertificate
}

// acceptedProperty is a property with the specs in which it has another value.
type acceptedProperty struct {
	specs.Property

	// context is the spec in which the parent of the property is set.
	context spec
	// specs are those with a meaningful value, and doubtful the others.
	specs, doubtful []spec
	// rejected is a spec that the API server rejects, or nil.
	rejected *spec
}

// run executes the plan of a walk.
func (x *statesSearch) run(p *plan) outcome {
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
	defer tune(x.t)()
	report := &StatesReport{}
	x.cert.Seed, x.cert.LeftOut = x.options.Seed, slices.Concat(x.plan.leftOut(), x.leftOut)
	x.learnCaches()
	for _, phase := range []func() *StatesFailure{
		x.start, x.single, x.generated, x.pairs, x.effects, x.faults, x.random,
	} {
		if report.Failure = phase(); report.Failure != nil {
			break
		}
	}
	x.cert.Specs, x.cert.Transitions = len(x.news), len(x.transitions)
	x.cert.Elapsed = time.Since(x.begin)
	report.Certificate = x.cert
	return report
}

// learnCaches finds out which kinds are read from caches.
func (x *statesSearch) learnCaches() {
	plan, _ := x.walkPlan(walk{{}}, make([]stored, 1))
	x.plan.findRead(func() outcome { return x.run(plan) })
}

// try checks a walk, and returns the failure with the fewest changes.
func (x *statesSearch) try(w walk) *StatesFailure {
	if v, failed := x.check(w); failed {
		return x.shrink(w, v)
	}
	return nil
}

// start checks the object as it is.
func (x *statesSearch) start() *StatesFailure { return x.try(walk{{}, {deleted: true}, {}}) }

// single changes each property on its own.
func (x *statesSearch) single() *StatesFailure {
	x.cert.Properties = len(x.properties)
	x.acceptValues()
	for _, p := range x.accepted {
		for _, w := range p.walks() {
			if failure := x.try(w); failure != nil {
				return failure
			}
		}
		x.observe(p)
	}
	return nil
}

// acceptValues asks the API server which values are valid.
func (x *statesSearch) acceptValues() {
	base := x.admit(walk{{}})[0].key
	for _, property := range x.properties {
		p := acceptedProperty{Property: property, context: spec{}.with(property.Context...)}
		seen := map[string]bool{base: true}
		if len(property.Context) > 0 {
			set := x.admit(walk{p.context})[0]
			if set.rejected != nil {
				x.cert.LeftOut = append(
					x.cert.LeftOut, fmt.Sprintf("%s is not changed: a sample of its parent is rejected", property.Path),
				)
				continue
			}
			seen[set.key] = true
		}
		for _, value := range property.Values {
			s := p.context.with(specs.Change{Path: property.Path, Value: value})
			answer := x.admit(walk{s})[0]
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

// walks changes one property: each value and back, all values one after the other, deletion and recreation.
func (p *acceptedProperty) walks() []walk {
	base := spec{}
	var walks []walk
	for _, s := range slices.Concat(p.specs, p.doubtful) {
		w := walk{base}
		if len(p.context.changes) > 0 {
			w = append(w, p.context)
		}
		walks = append(walks, slices.Concat(w, walk{s}, w[len(w)-1:], walk{s, base}))
	}
	if len(p.specs) == 0 {
		return walks
	}
	all := slices.Concat(walk{base}, p.specs, p.doubtful)
	if p.rejected != nil {
		all = append(all, *p.rejected)
	}
	first := p.specs[0]
	return append(walks, append(all, first, spec{deleted: true}, base, first, spec{deleted: true}))
}

// observe records whether a property has an effect.
func (x *statesSearch) observe(p acceptedProperty) {
	without := x.newObject(x.admit(walk{p.context})[0])
	for _, s := range p.specs {
		if x.affects(without, x.newObject(x.admit(walk{s})[0])) {
			x.affecting[p.Path.String()] = true
			return
		}
	}
}

// generated changes the whole spec.
func (x *statesSearch) generated() *StatesFailure {
	if x.plan.Space.Generate == nil {
		return nil
	}
	w := walk{{}}
	for n := range uint64(30) {
		w = append(w, x.generate(rand.New(rand.NewPCG(x.options.Seed, n<<8|4))))
		if len(w) == 4 {
			if failure := x.try(append(w, spec{})); failure != nil {
				return failure
			}
			w = walk{w[3]}
		}
	}
	return nil
}

func (x *statesSearch) generate(random *rand.Rand) spec {
	return x.specOfObject(x.plan.Space.Generate(random))
}

// pairs changes two properties.
func (x *statesSearch) pairs() *StatesFailure {
	var pairs [][2]int
	for a := range x.accepted {
		for b := range a {
			one, other := x.accepted[a], x.accepted[b]
			if len(one.specs) > 0 && len(other.specs) > 0 && !within(one.Path.String(), other.Path.String()) &&
				!within(other.Path.String(), one.Path.String()) {
				pairs = append(pairs, [2]int{b, a})
			}
		}
	}
	x.cert.PairsInAll = len(pairs)
	random := rand.New(rand.NewPCG(x.options.Seed, 5))
	random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	for _, pair := range pairs {
		if x.outOf(0.5) {
			return nil
		}
		one, other := x.accepted[pair[0]], x.accepted[pair[1]]
		a, b := one.specs[random.IntN(len(one.specs))], other.specs[random.IntN(len(other.specs))]
		both := a.with(b.changes...)
		if failure := x.try(walk{{}, a, both, b, {}, both, {deleted: true}, b}); failure != nil {
			return failure
		}
		x.cert.Pairs++
		x.observePair(one, both, b)
		x.observePair(other, both, a)
	}
	return nil
}

// observePair records whether a property has an effect while another one has another value: it may depend on that one.
func (x *statesSearch) observePair(p acceptedProperty, both, without spec) {
	if x.affecting[p.Path.String()] || len(p.context.changes) > 0 {
		return
	}
	one, other := x.admit(walk{without})[0], x.admit(walk{both})[0]
	if one.rejected == nil && other.rejected == nil {
		x.affecting[p.Path.String()] = x.affects(x.newObject(one), x.newObject(other))
	}
}

// random tries random walks.
func (x *statesSearch) random() *StatesFailure {
	if len(x.accepted) == 0 {
		return nil
	}
	for n := range x.options.Walks {
		if x.outOf(1) {
			return nil
		}
		if failure := x.try(x.randomWalk(rand.New(rand.NewPCG(x.options.Seed, uint64(n)<<8|3)))); failure != nil {
			return failure
		}
		x.cert.Walks++
	}
	return nil
}

func (x *statesSearch) randomWalk(random *rand.Rand) walk {
	w := walk{{}}
	now := spec{}
	for range 4 + random.IntN(5) {
		p := x.accepted[random.IntN(len(x.accepted))]
		values := slices.Concat(p.specs, p.specs, p.doubtful)
		switch choice := random.IntN(10); {
		case choice == 0 && !w[len(w)-1].deleted:
			w = append(w, spec{deleted: true})
			continue
		case choice == 1:
			now = spec{}
		case choice == 2 && p.rejected != nil:
			w = append(w, now.with(p.rejected.changes...))
			continue
		case choice <= 4 && len(now.changes) > 0:
			at := random.IntN(len(now.changes))
			now = spec{changes: slices.Delete(slices.Clone(now.changes), at, at+1)}
		case choice == 5 && x.plan.Space.Generate != nil:
			now = x.generate(random)
		default:
			now = now.with(values[random.IntN(len(values))].changes...)
		}
		w = append(w, now)
	}
	return w
}
