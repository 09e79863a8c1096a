// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/search"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/walk"
	"trueup.dev/internal/memapi/specs"
)

// refused reports whether the controller did not accept the spec at a Settle: the last reconcile has failed, the object
// is not Ready or has a warning although the first one is Ready or has none, or the status says so.
func (x *statesSearch) refused(o *judge.Outcome, settle int) bool {
	obj, err := x.primaryIn(o.At(settle)), o.ErrAt(settle)
	if err != nil || obj == nil {
		return err != nil
	}
	ready := state.StatusOf(obj).Ready(obj.GetGeneration())
	if x.firstReady && !ready || !x.firstWarned && o.Warnings.About(obj) {
		return true
	}
	return slices.ContainsFunc(refusalsOf(obj), func(refusal string) bool { return !slices.Contains(x.harmless, refusal) })
}

// learnStatus learns from the object as users create it first. If it is Ready, what its status says is not a refusal,
// and an object that is not Ready does not claim to have the state of its spec. If there is no warning about it, a
// warning about another one says that its spec is refused.
func (x *statesSearch) learnStatus(o *judge.Outcome, settle int) {
	obj := x.primaryIn(o.At(settle))
	if obj == nil {
		return
	}
	x.firstWarned = o.Warnings.About(obj)
	if x.firstReady = state.StatusOf(obj).Ready(obj.GetGeneration()); x.firstReady {
		x.harmless = refusalsOf(obj)
	}
}

// primaryIn returns the object in a state, or nil.
func (x *statesSearch) primaryIn(s *state.Snapshot) client.Object {
	at := slices.Index(s.Kinds, x.plan.primary)
	if at < 0 {
		return nil
	}
	for _, obj := range s.Objects[at] {
		if client.ObjectKeyFromObject(obj) == client.ObjectKeyFromObject(x.base) {
			return obj
		}
	}
	return nil
}

// refusals are parts of the types, reasons and phases by which controllers report that they do not act on a spec.
var refusals = []string{
	"invalid", "error", "fail", "degraded", "reject", "refuse", "suspend", "pause", "unsupported", "notfound", "missing",
	"conflict", "denied", "notallowed", "blocked", "taken", "stalled",
}

// refusalsOf lists what a status has that says that the controller does not act on the spec.
func refusalsOf(obj client.Object) []string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
	}
	var found []string
	status, _, _ := unstructured.NestedMap(content, "status")
	for _, field := range phrase.SortedKeys(status) {
		if text, ok := status[field].(string); ok && refuses(text) {
			found = append(found, field+" "+text)
		}
	}
	items, _, _ := unstructured.NestedSlice(content, "status", "conditions")
	for _, item := range items {
		condition, _ := item.(map[string]any)
		kind, _ := condition["type"].(string)
		status, _ := condition["status"].(string)
		reason, _ := condition["reason"].(string)
		holds := status == string(metav1.ConditionTrue)
		if refuses(kind) && holds || !holds && !refuses(kind) && refuses(reason) {
			found = append(found, kind+" "+status+" "+reason)
		}
	}
	return found
}

func refuses(text string) bool {
	text = strings.ToLower(text)
	return len(text) < 64 && slices.ContainsFunc(refusals, func(word string) bool { return strings.Contains(text, word) })
}

// refusedDifferences compares a state with the state of a new object whose spec the controller refuses. Fields and
// objects may also remain as they were before. Those that a new object does not have may have changed: whether they
// should is not known, see adviseHalf.
func (x *statesSearch) refusedDifferences(n *newObject, want, before, got *state.Snapshot) []state.Difference {
	wanted, old, now := n.plan.reader().Flatten(want), n.plan.reader().Flatten(before), n.plan.reader().Flatten(got)
	masked := maps.Clone(x.masks(n, want, got))
	for _, s := range []*state.Snapshot{want, got} {
		for name, flat := range n.plan.reader().Flatten(s) {
			if old[name] == nil || now[name] == nil {
				continue
			}
			for path, f := range flat.Read() {
				was, existed := old[name].Read()[path]
				is, exists := now[name].Read()[path]
				inNew := wanted[name] != nil
				if inNew {
					_, inNew = wanted[name].Read()[path]
				}
				if was.Value == is.Value || existed && exists && !inNew {
					masked[state.MaskKey(name, f, f)] = true
				}
			}
		}
	}
	found := judge.InBoth(n.plan.reader().Differences(want, got, masked), n.plan.reader().Differences(before, got, nil))
	return slices.DeleteFunc(
		found, func(d state.Difference) bool { return d.Cause == CauseUnexpected && old[d.Name] != nil },
	)
}

// mostHalves is how many half changes are reported.
const mostHalves = 5

// adviseHalf reports that a refused change was made in part: some dependents have changed, and others have not,
// although a new object has other ones. This may be intended.
func (x *statesSearch) adviseHalf(n *newObject, change string, before, got *state.Snapshot) {
	wanted, old, now := n.plan.reader().Flatten(n.created), n.plan.reader().Flatten(before), n.plan.reader().Flatten(got)
	same := state.Comparison{A: before, B: got}.SameFlat
	var changed, kept []string
	for _, name := range phrase.SortedKeys(old) {
		switch f := now[name]; {
		case name == x.primaryName():
		case f == nil || !same(old[name], f) && len(state.DifferentFields(name, old[name].Read(), f.Read(), n.Masked)) > 0:
			changed = append(changed, name)
		case wanted[name] == nil || len(state.DifferentFields(name, wanted[name].Read(), f.Read(), n.Masked)) > 0:
			kept = append(kept, name)
		}
	}
	for _, name := range phrase.SortedKeys(now) {
		if old[name] == nil {
			changed = append(changed, name)
		}
	}
	about := strings.Join(changed, ", ") + "|" + strings.Join(kept, ", ")
	if len(changed) == 0 || len(kept) == 0 || x.halves[about] || len(x.halves) == mostHalves {
		return
	}
	x.halves[about] = true
	x.cert.Advice = append(x.cert.Advice, fmt.Sprintf(
		"half a change: %s is refused, but has changed %s, and not %s", change, strings.Join(changed, ", "),
		strings.Join(kept, ", "),
	))
}

// primaryName is the name of the object.
func (x *statesSearch) primaryName() string {
	return x.plan.primary.Kind + " " + phrase.Name(client.ObjectKeyFromObject(x.base))
}

// foreignKey is the key of labels and annotations that users add for their own purposes.
const foreignKey = "users.example.com/note"

// foreignFields are the parts of the metadata to which users add a key.
var foreignFields = []string{"labels", "annotations"}

func foreignPath(field string) specs.Path { return specs.Path{"metadata", field, foreignKey} }

// foreignValues returns the values of the key that an object has, by the path of the property.
func foreignValues(obj client.Object) map[string]string {
	values := map[string]string{}
	for i, content := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
		if value, ok := content[foreignKey]; ok {
			values[foreignPath(foreignFields[i]).String()] = value
		}
	}
	return values
}

// foreignSpec returns a spec in which users have added a label and an annotation, unless these are skipped.
func (s *specSpace) foreignSpec(value string) walk.Spec {
	var changes []specs.Change
	for _, field := range foreignFields {
		if path := foreignPath(field); !s.skips(path.String()) {
			changes = append(changes, specs.Change{Path: path, Value: specs.Value{Content: value}})
		}
	}
	return walk.Spec{}.With(changes...)
}

// metadata adds a label and an annotation to the object, changes and removes them. They may have an effect, because
// some controllers pass them on. This is advice.
func (x *statesSearch) metadata() *StatesFailure {
	one, two := x.foreignSpec("one"), x.foreignSpec("two")
	if len(one.Changes) == 0 {
		return nil
	}
	if found := x.Try(walk.Walk{{}, one, two, {}, one, {Deleted: true}}); found != nil {
		return x.record(found.Candidate, found.Violation)
	}
	x.Foreign = &search.Property{Property: specs.Property{Path: specs.Path{"metadata"}}, Specs: []walk.Spec{one, two}}
	without, with := x.newObject(x.admit(walk.Walk{{}})[0]), x.newObject(x.admit(walk.Walk{one})[0])
	var affected []string
	for _, d := range x.effectsOf(without, with) {
		affected = append(affected, d.Name)
	}
	if len(affected) > 0 {
		x.cert.Advice = append(x.cert.Advice, fmt.Sprintf(
			"the label or the annotation %s, which users add, has an effect on %s", foreignKey, strings.Join(affected, ", "),
		))
	}
	return nil
}

// withoutKey returns a map without a key.
func withoutKey(m map[string]string, key string) map[string]string {
	if _, ok := m[key]; !ok {
		return m
	}
	rest := maps.Clone(m)
	delete(rest, key)
	return rest
}
