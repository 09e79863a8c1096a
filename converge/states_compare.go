// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/search"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/walk"
	"trueup.dev/internal/memapi/specs"
)

// newObject is the run in which an object is created with a spec, and deleted. It is the reference of all other ways to
// this spec.
type newObject struct {
	*judge.Reference

	plan             *plan
	created, deleted *state.Snapshot
	// refused is set if the controller does not accept the spec, and err is the error of the last reconcile after the
	// creation.
	refused bool
	err     error
	// rejected is the error of the creation, if a webhook rejects it.
	rejected error
}

// newObject runs the reference of a stored spec.
func (x *statesSearch) newObject(s stored) *newObject {
	if found := x.news[s.key]; found != nil {
		return found
	}
	w := walk.Walk{x.specOf(s), {Deleted: true}}
	results := make([]stored, len(w))
	plan, settles := x.walkPlan(w, results)
	o := x.run(plan)
	plan.reference = judge.NewReference(o)
	n := &newObject{Reference: plan.reference, plan: plan, rejected: results[0].rejected}
	n.created, n.deleted = n.At(settles[0]), n.At(settles[1])
	n.refused, n.err = x.refused(&n.Outcome, settles[0]), n.ErrAt(settles[0])
	x.news[s.key] = n
	return n
}

// specOf returns the spec of a stored object as one change for each field.
func (s *specSpace) specOf(stored stored) walk.Spec { return s.specOfObject(stored.object) }

func (s *specSpace) specOfObject(obj client.Object) walk.Spec {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return walk.Spec{}
	}
	var changes []specs.Change
	for _, field := range phrase.SortedKeys(content) {
		if !ownField(field) {
			changes = append(changes, specs.Change{Path: specs.Path{field}, Value: specs.Value{Content: content[field]}})
		}
	}
	for _, field := range phrase.SortedKeys(s.content) {
		if _, ok := content[field]; !ok && !ownField(field) {
			changes = append(changes, specs.Change{Path: specs.Path{field}, Value: specs.Value{Unset: true}})
		}
	}
	for _, path := range phrase.SortedKeys(foreignValues(obj)) {
		changes = append(changes, specs.Change{
			Path: specs.ParsePath(path), Value: specs.Value{Content: foreignValues(obj)[path]},
		})
	}
	return walk.Spec{Changes: changes}
}

// walkPlan returns the plan of a walk.
func (x *statesSearch) walkPlan(w walk.Walk, results []stored) (*plan, []int) {
	p := *x.plan
	var settles []int
	p.Steps, settles = x.steps(w, results)
	return &p, settles
}

// checkWrites runs a walk, and returns its first violation with the number of writes that lead to it, as far as that is
// known.
func (x *statesSearch) checkWrites(w walk.Walk) (v finding.Violation, writes int, failed bool) {
	results := x.admit(w)
	plan, settles := x.walkPlan(w, results)
	o := x.run(plan)
	if v, failed := o.First(); failed {
		return v, min(len(o.Settled)+1, len(w)), true
	}
	before := ""
	remaining := map[string]bool{}
	var accepted *newObject // of the last spec that the controller has accepted
	for i := range w {
		if results[i].rejected != nil && i > 0 {
			results[i].key, results[i].object = results[i-1].key, results[i-1].object // also if a webhook rejects it
		}
		want, n := x.expected(w[i], before, results[:i+1])
		if n == nil || n.rejected != nil {
			continue
		}
		if v, failed := n.First(); failed {
			return v, i + 1, true
		}
		previous := &state.Snapshot{}
		switch {
		case w[i].Deleted && accepted != nil:
			previous = accepted.deleted // what it leaves behind on purpose
		case i > 0 && !w[i].Deleted:
			previous = o.At(settles[i-1])
		}
		found := x.compare(n, want, previous, o.At(settles[i]))
		found = slices.DeleteFunc(found, func(d state.Difference) bool { return remaining[d.Name] })
		if len(found) > 0 {
			return pathViolation(found, w[i], o.ErrAt(settles[i])), i + 1, true
		}
		if w[i].Deleted {
			for name := range plan.reader().Flatten(o.At(settles[i]).Literal()) {
				remaining[name] = true // the next object finds what stays by design
			}
			accepted = nil
		} else if !n.refused {
			accepted = n
		}
		if n.refused && !w[i].Deleted && accepted != nil {
			x.adviseHalf(n, w[i].Describe(w[:i], x.content), previous, o.At(settles[i]))
		}
		x.transitions[[2]string{before, results[i].key}] = true
		before = results[i].key
	}
	return finding.Violation{}, len(w), false
}

// compare compares a state, and the one before it, with the state of a new object. It executes further runs without
// faults before it reports a difference.
func (x *statesSearch) compare(n *newObject, want, before, got *state.Snapshot) []state.Difference {
	for {
		found := n.plan.reader().Differences(want, got, x.masks(n, want, got))
		if len(found) > 0 && n.refused {
			found = x.refusedDifferences(n, want, before, got)
		}
		found = slices.DeleteFunc(found, func(d state.Difference) bool {
			return slices.ContainsFunc(x.plan.Space.HistoryDependent, func(h HistoryDependent) bool {
				return h.Field == "" && x.isFor(h, d.Name)
			})
		})
		if len(found) == 0 || n.Repeated {
			return found
		}
		n.plan.repeat(x.t, &n.Baseline)
	}
}

// expected returns the state that is expected after the last write, and the run that it comes from. It returns nil if
// no object was created yet. before is the spec before the write.
func (x *statesSearch) expected(s walk.Spec, before string, results []stored) (*state.Snapshot, *newObject) {
	if now := results[len(results)-1]; now.key != "" {
		n := x.newObject(now)
		return n.created, n
	}
	for _, result := range slices.Backward(results) {
		if s.Deleted && before != "" && result.key == before {
			n := x.newObject(result)
			return n.deleted, n
		}
	}
	return nil, nil
}

// pathViolation reports differences from the state of a new object. err is the error of the last reconcile.
func pathViolation(found []state.Difference, s walk.Spec, err error) finding.Violation {
	slices.SortStableFunc(found, func(a, b state.Difference) int { return cmp.Compare(a.Rank(), b.Rank()) })
	first := found[0]
	v := finding.Violation{Oracle: OraclePath, Cause: first.Cause, About: first.Name, Message: first.Lines[0]}
	if s.Deleted {
		v.Message += ", compared with the deletion of an object that never changed"
	} else {
		v.Message += ", compared with a new object"
	}
	if err != nil {
		v.Message += failsWith(err)
	}
	v.Details = slices.Clone(first.Lines[1:])
	for _, d := range found[1:] {
		v.Details = append(v.Details, d.Lines...)
	}
	return v
}

// failsWith describes the error of the last reconcile, as the end of a message.
func failsWith(err error) string {
	return "; the last reconcile fails: " + phrase.FirstLine(err.Error())
}

// masks returns the fields that may differ from a new object: those that differ between two new objects, and those that
// may depend on earlier specs.
func (x *statesSearch) masks(n *newObject, want, got *state.Snapshot) map[string]bool {
	if len(x.plan.Space.HistoryDependent) == 0 {
		return n.Masked
	}
	masked := maps.Clone(n.Masked)
	for _, s := range []*state.Snapshot{want, got} {
		for name, flat := range n.plan.reader().Flatten(s) {
			for path, f := range flat.Read() {
				if x.dependsOnHistory(name, path, f) {
					masked[state.MaskKey(name, f, f)] = true
				}
			}
		}
	}
	return masked
}

func (x *statesSearch) dependsOnHistory(name, path string, f state.Field) bool {
	return slices.ContainsFunc(x.plan.Space.HistoryDependent, func(h HistoryDependent) bool {
		return h.Field != "" && x.isFor(h, name) && (state.Within(path, h.Field) || state.Within(f.Mask, h.Field))
	})
}

// effectsOf returns how the states of two specs differ, apart from the spec itself. It executes further runs without
// faults before it returns a difference, which may be one of each run.
func (x *statesSearch) effectsOf(one, other *newObject) []state.Difference {
	for {
		effects := x.differencesOf(one, other)
		if len(effects) == 0 || one.Repeated {
			return effects
		}
		one.plan.repeat(x.t, &one.Baseline)
	}
}

// differencesOf returns how the states of two specs differ, apart from the spec itself.
func (x *statesSearch) differencesOf(one, other *newObject) []state.Difference {
	var found []state.Difference
	for _, d := range one.plan.reader().Differences(one.created, other.created, one.Masked) {
		if d.Name == x.primaryName() {
			d.Lines = slices.DeleteFunc(slices.Clone(d.Lines), func(line string) bool {
				field := strings.TrimPrefix(line, d.Name+": ")
				return !strings.HasPrefix(field, "status") && !strings.HasPrefix(field, "metadata") ||
					slices.ContainsFunc(foreignFields, func(name string) bool {
						return strings.HasPrefix(field, foreignPath(name).String())
					})
			})
		}
		if len(d.Lines) > 0 {
			found = append(found, d)
		}
	}
	return found
}

// adviseZero reports a number for which 0 has the same effect as no value, although another number shows in a child, or
// has that effect, too. Then 0 is taken for a value that is not set, which may be intended. All these specs were tried.
func (x *statesSearch) adviseZero(p *search.Property) {
	numbers := map[string]*newObject{}
	for _, s := range p.Specs {
		if value := x.valueIn(s, p.Path); isNumber(value.Content) {
			numbers[value.String()] = x.newObject(x.admit(walk.Walk{s})[0])
		}
	}
	if len(numbers) == 0 {
		return
	}
	with := func(value specs.Value) *newObject {
		stored := x.admit(walk.Walk{p.Context.With(specs.Change{Path: p.Path, Value: value})})[0]
		if stored.rejected != nil {
			return nil
		}
		return x.newObject(stored)
	}
	zero, unset := with(specs.Value{Content: int64(0)}), with(specs.Value{Unset: true})
	if zero == nil || unset == nil || zero.refused || len(x.differencesOf(zero, unset)) > 0 {
		return
	}
	for _, number := range phrase.SortedKeys(numbers) {
		if number == "0" || numbers[number].refused {
			continue
		}
		if text := x.takenForUnset(zero, numbers[number], number); text != "" {
			x.cert.Advice = append(x.cert.Advice, fmt.Sprintf(
				"%s = 0 has the same effect as no value: %s. A pointer tells them apart, or a minimum in the schema rejects 0",
				p.Path, text,
			))
			return
		}
	}
}

// takenForUnset describes what shows that 0 does not have an effect of its own, compared with another number, or
// returns "".
func (x *statesSearch) takenForUnset(zero, other *newObject, number string) string {
	if len(x.differencesOf(zero, other)) == 0 {
		return number + " has it, too"
	}
	zeros, numbers := zero.plan.reader().Flatten(zero.created), other.plan.reader().Flatten(other.created)
	for _, name := range phrase.SortedKeys(numbers) {
		if name == x.primaryName() || zeros[name] == nil {
			continue
		}
		now := zeros[name].Read()
		for _, path := range phrase.SortedKeys(numbers[name].Read()) {
			f := numbers[name].Read()[path]
			if g, ok := now[path]; ok && text(f) == number && text(g) != number && text(g) != "0" {
				return fmt.Sprintf("%s: %s is %s, and %s if %s is written", name, path, g.Value, number, number)
			}
		}
	}
	return ""
}

// text is the value of a field without the quotes of a text.
func text(f state.Field) string { return strings.Trim(f.Value, `"`) }

// valueIn returns the value of a property in a spec.
func (s *specSpace) valueIn(spec walk.Spec, path specs.Path) specs.Value {
	content := runtime.DeepCopyJSON(s.content)
	for _, change := range walk.Sorted(spec.Changes) {
		change.Apply(content)
	}
	return walk.ValueIn(content, path)
}

func isNumber(content any) bool {
	switch content.(type) {
	case int64, float64:
		return true
	}
	return false
}
