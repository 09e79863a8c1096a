// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/walk"
	"trueup.dev/internal/memapi/specs"
)

// WalkCounts counts what was tried, as a certificate has it.
type WalkCounts struct {
	// Changed is the number of properties with a value that is accepted, Values the number of these values, and Rejected
	// the number of others.
	Changed, Values, Rejected int
	// Pairs is the number of pairs of properties, of PairsInAll, and Random the number of random walks.
	Pairs, PairsInAll, Random int
	// LeftOut are the reasons why something was not tried.
	LeftOut []string
}

// Walks is a search for a walk that fails.
type Walks struct {
	WalkCounts

	// Seed is the seed of random choices, and RandomWalks the number of random walks for each property.
	Seed        uint64
	RandomWalks int
	// Properties are what users change, and Disturbances the names of what they do besides. Generate returns another spec,
	// or is nil.
	Properties   []specs.Property
	Disturbances []string
	Generate     func(*rand.Rand) walk.Spec
	// Run executes a walk. It returns the first violation, with the number of writes that lead to it, as far as that is
	// known.
	Run func(walk.Walk) (v finding.Violation, writes int, failed bool)
	// Stored returns a key of the spec that the API server stores, unless it rejects it. Accepted does that too, but for
	// a spec that a webhook may reject.
	Stored, Accepted func(walk.Spec) (key string, ok bool)
	// Affects reports whether two specs lead to different states.
	Affects func(one, other walk.Spec) bool
	// OnEffect is called for each property that has an effect when it changes on its own.
	OnEffect func(*Property)
	// OutOf reports whether a share of the time is used up.
	OutOf func(share float64) bool

	// Changeable are the properties with values that are accepted, and Foreign are changes of the metadata, if users make
	// these.
	Changeable []Property
	Foreign    *Property
	// Affecting are the properties that have an effect.
	Affecting map[string]bool
}

// Property is a property with the specs in which it has another value.
type Property struct {
	specs.Property

	// Context is the spec in which the parent of the property is set.
	Context walk.Spec
	// Specs are those with a meaningful value, and Doubtful the others.
	Specs, Doubtful []walk.Spec
	// Rejected is a spec that the API server rejects, or nil.
	Rejected *walk.Spec
}

// Try checks a walk, and returns the failure with the fewest and smallest changes.
func (x *Walks) Try(w walk.Walk) *Failure[walk.Walk] {
	v, writes, failed := x.Run(w)
	if !failed {
		return nil
	}
	f := &Failure[walk.Walk]{Candidate: w, Violation: v, Run: func(w walk.Walk) (finding.Violation, bool) {
		if len(w) == 0 {
			return finding.Violation{}, false
		}
		v, _, failed := x.Run(w)
		return v, failed
	}}
	if writes < len(w) {
		f.Replace(w[:writes])
	}
	f.Shrink(walk.Walk.Size, x.shrink)
	return f
}

// shrink leaves out writes and changes, and gives properties simpler values.
func (x *Walks) shrink(f *Failure[walk.Walk]) {
	for i := len(f.Candidate) - 1; i >= 0; i-- {
		f.Replace(slices.Delete(slices.Clone(f.Candidate), i, i+1))
	}
	for _, path := range f.Candidate.Paths() {
		if !f.Replace(f.Candidate.Without(path, -1)) {
			for i := range f.Candidate {
				f.Replace(f.Candidate.Without(path, i))
			}
		}
		x.simplify(f, path)
	}
}

// simplify gives a property the simplest value.
func (x *Walks) simplify(f *Failure[walk.Walk], path string) {
	at := slices.IndexFunc(x.Properties, func(p specs.Property) bool { return p.Path.String() == path })
	if at < 0 {
		return
	}
	simplest := specs.Change{Path: x.Properties[at].Path, Value: x.Properties[at].Values[0]}
	for i := range f.Candidate {
		if !slices.ContainsFunc(f.Candidate[i].Changes, func(c specs.Change) bool {
			return c.Path.String() == path && c.String() != simplest.String()
		}) {
			continue
		}
		simpler := slices.Clone(f.Candidate)
		simpler[i] = simpler[i].With(simplest)
		f.Replace(simpler)
	}
}

// LeaveOut records what is not tried because the search is limited.
func (x *Walks) LeaveOut(format string, args ...any) {
	x.LeftOut = append(x.LeftOut, fmt.Sprintf(format, args...)+": -converge.budget is for more")
}

// Start checks the object as it is.
func (x *Walks) Start() *Failure[walk.Walk] { return x.Try(walk.Walk{{}, {Deleted: true}, {}}) }

// Single changes each property on its own: first all values in a row, then each value and back.
func (x *Walks) Single() *Failure[walk.Walk] {
	x.acceptValues()
	for i := range x.Changeable {
		p := &x.Changeable[i]
		if failure := x.Try(p.inARow()); failure != nil {
			return failure
		}
		x.observe(p)
	}
	for i := range x.Changeable {
		if x.OutOf(0.5) {
			left := len(x.Changeable) - i
			x.LeaveOut("the values of %s are changed in a row, and not each one back", phrase.Plural(left, "property"))
			break
		}
		if failure := x.Try(x.Changeable[i].backAndForth()); failure != nil {
			return failure
		}
	}
	return nil
}

// acceptValues asks the API server which values are valid.
func (x *Walks) acceptValues() {
	base, _ := x.Stored(walk.Spec{})
	for _, property := range x.Properties {
		p := Property{Property: property, Context: walk.Spec{}.With(property.Context...)}
		seen := map[string]bool{base: true}
		if len(property.Context) > 0 {
			set, ok := x.Stored(p.Context)
			if !ok {
				x.LeftOut = append(
					x.LeftOut, fmt.Sprintf("%s is not changed: a sample of its parent is rejected", property.Path),
				)
				continue
			}
			seen[set] = true
		}
		for _, value := range property.Values {
			s := p.Context.With(specs.Change{Path: property.Path, Value: value})
			key, ok := x.Accepted(s)
			switch {
			case !ok:
				x.Rejected++
				p.Rejected = &s
				continue
			case seen[key]:
				continue // a default, or the same in another form
			case value.Doubtful:
				p.Doubtful = append(p.Doubtful, s)
			default:
				p.Specs = append(p.Specs, s)
			}
			seen[key] = true
			x.Values++
		}
		if len(p.Specs)+len(p.Doubtful) == 0 {
			x.LeftOut = append(x.LeftOut, fmt.Sprintf("%s is not changed: no other value is accepted", property.Path))
			continue
		}
		x.Changed++
		x.Changeable = append(x.Changeable, p)
	}
}

// begin is a walk to the context of a property.
func (p *Property) begin() walk.Walk {
	if len(p.Context.Changes) > 0 {
		return walk.Walk{{}, p.Context}
	}
	return walk.Walk{{}}
}

// inARow changes one property to all values one after the other, and back. The object is deleted with another value.
func (p *Property) inARow() walk.Walk {
	values := slices.Concat(p.Specs, p.Doubtful)
	w := append(p.begin(), values...)
	if p.Rejected != nil {
		w = append(w, *p.Rejected)
	}
	return append(w, walk.Spec{}, values[0], walk.Spec{Deleted: true})
}

// backAndForth changes one property to each value and back, the first one twice, and recreates the object.
func (p *Property) backAndForth() walk.Walk {
	w := p.begin()
	back := w[len(w)-1]
	values := slices.Concat(p.Specs, p.Doubtful)
	for _, s := range values {
		w = append(w, s, back)
	}
	return append(w, values[0], walk.Spec{}, walk.Spec{Deleted: true}, values[0], walk.Spec{Deleted: true})
}

// observe records whether a property has an effect.
func (x *Walks) observe(p *Property) {
	if slices.ContainsFunc(p.Specs, func(s walk.Spec) bool { return x.Affects(p.Context, s) }) {
		x.Affecting[p.Path.String()] = true
		x.OnEffect(p)
	}
}

// Disturb performs each disturbance on a new object, and before and after a change of each property.
func (x *Walks) Disturb() *Failure[walk.Walk] {
	for _, name := range x.Disturbances {
		begin := walk.Walk{{}}.Disturbed(name)
		if failure := x.Try(append(slices.Clip(begin), walk.Spec{Deleted: true}, walk.Spec{})); failure != nil {
			return failure
		}
		for i, p := range x.Changeable {
			if x.OutOf(0.6) {
				x.LeaveOut("%q is not performed while %s change", name, phrase.Plural(len(x.Changeable)-i, "property"))
				break
			}
			if len(p.Specs) == 0 {
				continue
			}
			w := append(slices.Clip(begin), p.Context, p.Specs[0]).Disturbed(name)
			if failure := x.Try(append(w, p.Context, walk.Spec{}, walk.Spec{Deleted: true})); failure != nil {
				return failure
			}
		}
	}
	return nil
}

// Generated changes the whole spec.
func (x *Walks) Generated() *Failure[walk.Walk] {
	if x.Generate == nil {
		return nil
	}
	w := walk.Walk{{}}
	for n := range uint64(30) {
		w = append(w, x.Generate(rand.New(rand.NewPCG(x.Seed, n<<8|4))))
		if len(w) == 4 {
			if failure := x.Try(append(w, walk.Spec{})); failure != nil {
				return failure
			}
			w = walk.Walk{w[3]}
		}
	}
	return nil
}

// PairsOfProperties changes two properties.
func (x *Walks) PairsOfProperties() *Failure[walk.Walk] {
	var pairs [][2]int
	for a := range x.Changeable {
		for b := range a {
			one, other := &x.Changeable[a], &x.Changeable[b]
			if len(one.Specs) > 0 && len(other.Specs) > 0 && !state.Within(one.Path.String(), other.Path.String()) &&
				!state.Within(other.Path.String(), one.Path.String()) {
				pairs = append(pairs, [2]int{b, a})
			}
		}
	}
	x.PairsInAll = len(pairs)
	random := rand.New(rand.NewPCG(x.Seed, 5))
	random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	return Each(func(yield func(walk.Walk) bool) {
		for _, pair := range pairs {
			if x.OutOf(0.65) {
				return
			}
			one, other := &x.Changeable[pair[0]], &x.Changeable[pair[1]]
			a, b := one.Specs[random.IntN(len(one.Specs))], other.Specs[random.IntN(len(other.Specs))]
			both := a.With(b.Changes...)
			if !yield(walk.Walk{{}, a, both, b, {}, both, {Deleted: true}, b}) {
				return
			}
			x.observePair(one, both, b)
			x.observePair(other, both, a)
		}
	}, never, x.Try, &x.Pairs)
}

// observePair records whether a property has an effect while another one has another value: it may depend on that one.
func (x *Walks) observePair(p *Property, both, without walk.Spec) {
	if path := p.Path.String(); !x.Affecting[path] && len(p.Context.Changes) == 0 {
		x.Affecting[path] = x.Affects(without, both)
	}
}

// AtRandom tries random walks.
func (x *Walks) AtRandom() *Failure[walk.Walk] {
	if len(x.Changeable) == 0 {
		return nil
	}
	return Each(func(yield func(walk.Walk) bool) {
		for n := range x.RandomWalks * len(x.Changeable) {
			if !yield(x.randomWalk(rand.New(rand.NewPCG(x.Seed, uint64(n)<<8|3)))) {
				return
			}
		}
	}, func() bool { return x.OutOf(1) }, x.Try, &x.Random)
}

func (x *Walks) randomWalk(random *rand.Rand) walk.Walk {
	w := walk.Walk{{}}
	now := walk.Spec{}
	all := slices.Clip(x.Changeable)
	if x.Foreign != nil {
		all = append(all, *x.Foreign)
	}
	for range 4 + random.IntN(5) {
		if d := x.Disturbances; len(d) > 0 && random.IntN(4) == 0 {
			w = w.Disturbed(d[random.IntN(len(d))])
			continue
		}
		p := all[random.IntN(len(all))]
		values := slices.Concat(p.Specs, p.Specs, p.Doubtful)
		switch choice := random.IntN(10); {
		case choice == 0 && !w[len(w)-1].Deleted:
			w = append(w, walk.Spec{Deleted: true})
			continue
		case choice == 1:
			now = walk.Spec{}
		case choice == 2 && p.Rejected != nil:
			w = append(w, now.With(p.Rejected.Changes...))
			continue
		case choice <= 4 && len(now.Changes) > 0:
			at := random.IntN(len(now.Changes))
			now = walk.Spec{Changes: slices.Delete(slices.Clone(now.Changes), at, at+1)}
		case choice == 5 && x.Generate != nil:
			now = x.Generate(random)
		default:
			now = now.With(values[random.IntN(len(values))].Changes...)
		}
		w = append(w, now)
	}
	return w
}
