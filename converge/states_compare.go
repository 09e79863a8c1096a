// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"maps"
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
	// rejected is the error of the creation, if a webhook rejects it.
	rejected error
	// masked are the fields that differ between such runs, and repeated is set once all were tried.
	masked   map[string]bool
	repeated bool
}

// newObject runs the reference of a stored spec.
func (x *statesSearch) newObject(s stored) *newObject {
	if found := x.news[s.key]; found != nil {
		return found
	}
	w := walk{x.specOf(s), {deleted: true}}
	results := make([]stored, len(w))
	plan, settles := x.walkPlan(w, results)
	n := &newObject{plan: plan, outcome: x.run(plan), rejected: results[0].rejected, masked: map[string]bool{}}
	n.created, n.deleted = n.at(settles[0]), n.at(settles[1])
	n.refused = x.refused(&n.outcome, settles[0])
	x.news[s.key] = n
	return n
}

// repeat repeats the run, to find out what differs each time.
func (x *statesSearch) repeat(n *newObject) {
	n.repeated = true
	for _, v := range append(n.plan.repetitions(), n.plan.other()) {
		if o := n.plan.execute(x.t, nil, v, nil); len(o.violations) == 0 {
			n.plan.mask(n.masked, n.settled, o.settled)
		}
	}
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
	remaining := map[string]bool{}
	for i := range w {
		if results[i].rejected != nil && i > 0 {
			results[i].key, results[i].object = results[i-1].key, results[i-1].object // also if a webhook rejects it
		}
		want, n := x.expected(w[i], before, results[:i+1])
		if n == nil || n.rejected != nil {
			continue
		}
		if v, failed := n.violation(); failed {
			return v, true
		}
		previous := &snapshot{}
		if i > 0 {
			previous = o.at(settles[i-1])
		}
		found := x.compare(n, want, previous, o.at(settles[i]))
		found = slices.DeleteFunc(found, func(d difference) bool { return remaining[d.name] })
		if len(found) > 0 {
			return pathViolation(found, w[i]), true
		}
		if w[i].deleted {
			for name := range plan.flatten(n.deleted) {
				remaining[name] = true // the next object finds what stays by design
			}
		}
		x.transitions[[2]string{before, results[i].key}] = true
		before = results[i].key
	}
	return Violation{}, false
}

// changed compares a state with that of a new object whose spec the controller refuses. Fields and objects may also
// remain as they were.
func (x *statesSearch) changed(n *newObject, want, before, got *snapshot) []difference {
	old, now := n.plan.flatten(before), n.plan.flatten(got)
	masked := maps.Clone(x.masks(n, want, got))
	for _, s := range []*snapshot{want, got} {
		for name, flat := range n.plan.flatten(s) {
			if old[name] == nil || now[name] == nil {
				continue
			}
			for path, f := range flat.read() {
				if old[name].read()[path].value == now[name].read()[path].value {
					masked[maskKey(name, f, f)] = true
				}
			}
		}
	}
	return inBoth(n.plan.differences(want, got, masked), n.plan.differences(before, got, nil))
}

// compare compares a state, and the one before it, with that of a new object. It executes further runs without faults
// before it reports a difference.
func (x *statesSearch) compare(n *newObject, want, before, got *snapshot) []difference {
	for {
		found := n.plan.differences(want, got, x.masks(n, want, got))
		if len(found) > 0 && n.refused {
			found = x.changed(n, want, before, got)
		}
		found = slices.DeleteFunc(found, func(d difference) bool {
			return slices.ContainsFunc(x.plan.Space.HistoryDependent, func(h HistoryDependent) bool {
				return h.Field == "" && h.isFor(d.name)
			})
		})
		if len(found) == 0 || n.repeated {
			return found
		}
		x.repeat(n)
	}
}

// expected returns the state that is expected after the last write, and the run that it comes from. It returns nil if
// no object was created yet. before is the spec before the write.
func (x *statesSearch) expected(s spec, before string, results []stored) (*snapshot, *newObject) {
	if now := results[len(results)-1]; now.key != "" {
		n := x.newObject(now)
		return n.created, n
	}
	for _, result := range slices.Backward(results) {
		if s.deleted && before != "" && result.key == before {
			n := x.newObject(result)
			return n.deleted, n
		}
	}
	return nil, nil
}

func pathViolation(found []difference, s spec) Violation {
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
func (x *statesSearch) masks(n *newObject, want, got *snapshot) map[string]bool {
	if len(x.plan.Space.HistoryDependent) == 0 {
		return n.masked
	}
	masked := maps.Clone(n.masked)
	for _, s := range []*snapshot{want, got} {
		for name, flat := range n.plan.flatten(s) {
			for path, f := range flat.read() {
				if x.dependsOnHistory(name, path, f) {
					masked[maskKey(name, f, f)] = true
				}
			}
		}
	}
	return masked
}

func (x *statesSearch) dependsOnHistory(name, path string, f field) bool {
	return slices.ContainsFunc(x.plan.Space.HistoryDependent, func(h HistoryDependent) bool {
		return h.Field != "" && h.isFor(name) && (within(path, h.Field) || within(f.mask, h.Field))
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
var refusals = []string{
	"invalid", "error", "fail", "degraded", "reject", "refuse", "suspend", "pause", "unsupported", "notfound", "missing",
	"conflict", "denied", "notallowed", "blocked", "taken",
}

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
	primary := x.plan.primary.Kind + " " + nameOf(client.ObjectKeyFromObject(x.base))
	for {
		found := one.plan.differences(one.created, other.created, one.masked)
		affected := slices.ContainsFunc(found, func(d difference) bool {
			return d.name != primary || slices.ContainsFunc(d.lines, func(line string) bool {
				field := strings.TrimPrefix(line, d.name+": ")
				return strings.HasPrefix(field, "status") || strings.HasPrefix(field, "metadata")
			})
		})
		if !affected || one.repeated {
			return affected
		}
		x.repeat(one) // the difference may be one of each run
	}
}
