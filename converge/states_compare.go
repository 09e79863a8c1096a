// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/specs"
)

// newObject is the run in which an object is created with a spec, and deleted. It is the reference of all other ways to
// this spec.
type newObject struct {
	outcome

	plan             *plan
	created, deleted *snapshot
	// refused is set if the controller does not accept the spec.
	refused bool
	// masked are the fields that differ between two such runs, once they were needed.
	masked map[string]bool
}

// newObject runs the reference of a stored spec.
func (x *statesSearch) newObject(s stored) *newObject {
	if found := x.news[s.key]; found != nil {
		return found
	}
	w := walk{x.specOf(s), {deleted: true}}
	plan, settles := x.walkPlan(w, make([]stored, len(w)))
	n := &newObject{plan: plan, outcome: x.run(plan)}
	n.created, n.deleted = n.at(settles[0]), n.at(settles[1])
	n.refused = x.refused(&n.outcome, settles[0])
	x.news[s.key] = n
	return n
}

// specOf returns the spec of a stored object as one change for each field.
func (s *specSpace) specOf(stored stored) spec { return s.specOfObject(stored.object) }

func (s *specSpace) specOfObject(obj client.Object) spec {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return spec{}
	}
	var changes []specs.Change
	for _, field := range sortedKeys(content) {
		if !ownField(field) {
			changes = append(changes, specs.Change{Path: specs.Path{field}, Value: specs.Value{Content: content[field]}})
		}
	}
	for _, field := range sortedKeys(s.content) {
		if _, ok := content[field]; !ok && !ownField(field) {
			changes = append(changes, specs.Change{Path: specs.Path{field}, Value: specs.Value{Unset: true}})
		}
	}
	return spec{changes: changes}
}

// walkPlan returns the plan of a walk.
func (x *statesSearch) walkPlan(w walk, results []stored) (*plan, []int) {
	p := *x.plan
	var settles []int
	p.Steps, settles = x.steps(w, results)
	return &p, settles
}

// check runs a walk, and returns its first violation.
func (x *statesSearch) check(w walk) (Violation, bool) {
	results := x.admit(w)
	plan, settles := x.walkPlan(w, results)
	o := x.run(plan)
	if v, failed := o.violation(); failed {
		return v, true
	}
	before := ""
	recreated := map[string]bool{}
	for i := range w {
		now := results[i]
		want, n := x.expected(w[i], now, before, results, i)
		if n == nil {
			continue // nothing was created yet
		}
		if v, failed := n.violation(); failed {
			return v, true
		}
		found := n.plan.differences(want, o.at(settles[i]), x.masks(n, o.at(settles[i])))
		if n.refused && i > 0 {
			found = inBoth(found, n.plan.differences(o.at(settles[i-1]), o.at(settles[i]), nil))
		}
		found = slices.DeleteFunc(found, func(d difference) bool { return recreated[d.name] || x.mayRemain(d) })
		if len(found) > 0 {
			return pathViolation(found, w[i], i), true
		}
		if w[i].deleted {
			// What stays by design, the next object finds.
			for name := range plan.flatten(n.deleted) {
				recreated[name] = true
			}
		}
		x.transitions[[2]string{before, now.key}] = true
		before = now.key
	}
	return Violation{}, false
}

// expected returns the state that is expected after a write, and the run that it comes from.
func (x *statesSearch) expected(s spec, now stored, before string, results []stored, i int) (*snapshot, *newObject) {
	if now.key != "" {
		n := x.newObject(now)
		return n.created, n
	}
	for last := i; last >= 0 && s.deleted && before != ""; last-- {
		if results[last].key == before {
			n := x.newObject(results[last])
			return n.deleted, n
		}
	}
	return nil, nil
}

func pathViolation(found []difference, s spec, changes int) Violation {
	slices.SortStableFunc(found, func(a, b difference) int { return cmp.Compare(a.rank(), b.rank()) })
	first := found[0]
	v := Violation{Oracle: OraclePath, Cause: first.cause, About: first.name, Message: first.lines[0]}
	if s.deleted {
		v.Message += ", compared with the deletion of an object that never changed"
	} else {
		v.Message += ", compared with a new object"
	}
	v.Details = slices.Clone(first.lines[1:])
	for _, d := range found[1:] {
		v.Details = append(v.Details, d.lines...)
	}
	return v
}

// masks returns the fields that may differ from a new object: those that differ between two new objects, and those that
// may depend on earlier specs.
func (x *statesSearch) masks(n *newObject, got *snapshot) map[string]bool {
	if n.masked == nil {
		other := n.plan.execute(x.t, nil, n.plan.other(), nil)
		n.masked = n.plan.masks(n.settled, other.settled)
	}
	if len(x.plan.Space.HistoryDependent) == 0 {
		return n.masked
	}
	masked := map[string]bool{}
	for _, s := range []*snapshot{n.created, n.deleted, got} {
		for name, flat := range n.plan.flatten(s) {
			for path := range flat.fields {
				if key := maskKey(name, path); n.masked[key] || x.dependsOnHistory(name, key) {
					masked[key] = true
				}
			}
		}
	}
	return masked
}

func (x *statesSearch) dependsOnHistory(name, key string) bool {
	_, path, _ := strings.Cut(key, ":")
	return slices.ContainsFunc(x.plan.Space.HistoryDependent, func(h HistoryDependent) bool {
		return h.isFor(name) && h.Field != "" && below(path, h.Field)
	})
}

// mayRemain reports whether a difference is about an object that may depend on earlier specs as a whole.
func (x *statesSearch) mayRemain(d difference) bool {
	return slices.ContainsFunc(x.plan.Space.HistoryDependent, func(h HistoryDependent) bool {
		return h.Field == "" && h.isFor(d.name)
	})
}

func (h HistoryDependent) isFor(name string) bool {
	return h.Object == nil || strings.HasPrefix(name, kindName(h.Object)+" ")
}

// refused reports whether the controller did not accept the spec at a Settle: the last reconcile has failed, or the
// status says so.
func (x *statesSearch) refused(o *outcome, settle int) bool {
	at := slices.Index(o.settledAt, settle)
	if at < 0 {
		return false
	}
	return o.settledErrs[at] != nil || saysRefused(x.primaryIn(o.settled[at]))
}

// primaryIn returns the object in a state, or nil.
func (x *statesSearch) primaryIn(s *snapshot) client.Object {
	at := slices.Index(s.kinds, x.plan.primary)
	if at < 0 {
		return nil
	}
	for _, obj := range s.objects[at] {
		if client.ObjectKeyFromObject(obj) == client.ObjectKeyFromObject(x.base) {
			return obj
		}
	}
	return nil
}

// refusals are parts of the types, reasons and phases by which controllers report that they do not act on a spec.
var refusals = []string{"invalid", "error", "fail", "degraded", "reject", "refuse", "suspend", "pause", "unsupported"}

// saysRefused reports whether a status says that the controller does not act on the spec.
func saysRefused(obj client.Object) bool {
	if obj == nil {
		return false
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return false
	}
	status, _, _ := unstructured.NestedMap(content, "status")
	for _, value := range status {
		if text, ok := value.(string); ok && refuses(text) {
			return true
		}
	}
	items, _, _ := unstructured.NestedSlice(content, "status", "conditions")
	for _, item := range items {
		condition, _ := item.(map[string]any)
		kind, _ := condition["type"].(string)
		status, _ := condition["status"].(string)
		reason, _ := condition["reason"].(string)
		if refuses(kind) && status == string(metav1.ConditionTrue) ||
			status != string(metav1.ConditionTrue) && !refuses(kind) && refuses(reason) {
			return true
		}
	}
	return false
}

func refuses(text string) bool {
	text = strings.ToLower(text)
	return len(text) < 64 && slices.ContainsFunc(refusals, func(word string) bool { return strings.Contains(text, word) })
}

// affects reports whether two specs lead to different states, apart from the spec itself.
func (x *statesSearch) affects(one, other *newObject) bool {
	if one.refused || other.refused {
		return false
	}
	a, b := one.plan.flatten(one.created), one.plan.flatten(other.created)
	primary := thingOf(x.plan.primary, x.base).String()
	masked := x.masks(one, other.created)
	for _, d := range one.plan.differences(one.created, other.created, masked) {
		if d.name != primary || a[d.name] == nil || b[d.name] == nil {
			return true
		}
		if slices.ContainsFunc(d.lines, func(line string) bool {
			field := strings.TrimPrefix(line, d.name+": ")
			return strings.HasPrefix(field, "status") || strings.HasPrefix(field, "metadata")
		}) {
			return true
		}
	}
	return false
}
