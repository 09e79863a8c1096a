// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/nilcheck"
)

// thing is an object by name, or all those with names that the API server has made of one prefix.
type thing struct {
	kind      schema.GroupVersionKind
	namespace string
	name      string
	generated bool
}

func (t thing) String() string {
	name := t.name
	if t.generated {
		name += "*"
	}
	return t.kind.Kind + " " + nameOf(types.NamespacedName{Namespace: t.namespace, Name: name})
}

func thingOf(kind schema.GroupVersionKind, obj client.Object) thing {
	if generate := obj.GetGenerateName(); generate != "" && strings.HasPrefix(obj.GetName(), generate) {
		return thing{kind, obj.GetNamespace(), generate, true}
	}
	return thing{kind, obj.GetNamespace(), obj.GetName(), false}
}

// keyOf is by what points name an object: those that the API server has named are named otherwise when there are other
// faults.
func keyOf(obj client.Object) types.NamespacedName {
	key := client.ObjectKeyFromObject(obj)
	if t := thingOf(schema.GroupVersionKind{}, obj); t.generated {
		key.Name = t.name + "*"
	}
	return key
}

// keyFor is keyOf for what is stored, if it is.
func (r *run) keyFor(kind schema.GroupVersionKind, key types.NamespacedName) types.NamespacedName {
	if stored := r.server.Get(kind, key); stored != nil {
		return keyOf(stored)
	}
	return key
}

// ledger counts what a process has created and deleted.
type ledger struct {
	created, deleted map[thing]int
	// live is how many there are of what the process has created, and most how many there have been at once.
	live, most map[thing]int
	// explained is how often somebody else has made it necessary to create or delete something once more.
	explained map[thing]int
}

func newLedger() ledger {
	return ledger{map[thing]int{}, map[thing]int{}, map[thing]int{}, map[thing]int{}, map[thing]int{}}
}

// explain notes that somebody else does something to an object, and so to those that it owns, or that are in it.
func (l *ledger) explain(r *run, kind schema.GroupVersionKind, key types.NamespacedName) {
	l.explainAll(r, kind, key, map[types.UID]bool{})
}

func (l *ledger) explainAll(r *run, kind schema.GroupVersionKind, key types.NamespacedName, done map[types.UID]bool) {
	stored := r.server.Get(kind, key)
	if stored == nil || done[stored.GetUID()] {
		return
	}
	done[stored.GetUID()] = true
	l.explained[thingOf(kind, stored)]++
	whole := kind.Group == "" && kind.Kind == "Namespace"
	for _, owned := range r.server.Kinds() {
		for _, obj := range r.server.List(owned) {
			if whole && obj.GetNamespace() == key.Name ||
				slices.ContainsFunc(ownersOf(obj), func(uid types.UID) bool { return uid == stored.GetUID() }) {
				l.explainAll(r, owned, client.ObjectKeyFromObject(obj), done)
			}
		}
	}
}

func ownersOf(obj client.Object) []types.UID {
	var uids []types.UID
	for _, owner := range obj.GetOwnerReferences() {
		uids = append(uids, owner.UID)
	}
	return uids
}

// excess returns what there was more of than without faults, and than faults explain. If chosen is true the reconciler
// may choose names, so that only those that it also chooses without faults say anything.
func (l *ledger) excess(reference *reference, skipped []int, chosen bool) (Violation, bool) {
	for _, c := range []struct {
		cause  Cause
		verb   string
		counts func(*ledger) map[thing]int
	}{
		{CauseDeletedAgain, "deleted", func(l *ledger) map[thing]int { return l.deleted }},
		{CauseCreatedAgain, "created", func(l *ledger) map[thing]int { return l.created }},
		{CauseLiveAtOnce, "live at once", func(l *ledger) map[thing]int { return l.most }},
	} {
		mine := c.counts(l)
		for _, t := range slices.SortedFunc(maps.Keys(mine), func(a, b thing) int {
			return strings.Compare(a.String(), b.String())
		}) {
			expected := c.counts(&reference.made)[t]
			for _, step := range skipped {
				if quick := reference.quick[step]; quick != nil {
					expected += c.counts(&quick.made)[t] // some of this, some of that
				}
			}
			if n := mine[t]; n > expected+l.explained[t] && (expected > 0 || !chosen) {
				return Violation{
					Oracle: OracleDuplicates, Cause: c.cause, About: t.String(),
					Message: fmt.Sprintf("%s: %d %s, %d without faults", t, n, c.verb, expected),
				}, true
			}
		}
	}
	return Violation{}, false
}

// primaryIsThere is true if the request that is being worked on is for a primary object that is there, and is not about
// to go.
func (r *run) primaryIsThere() bool {
	if r.serving == nil {
		return false
	}
	a := r.process.activity(r.serving.who)
	if a == nil {
		return false
	}
	primary := r.server.Get(r.plan.primary, a.NamespacedName)
	return primary != nil && primary.GetDeletionTimestamp() == nil && !r.orphan(primary)
}

// onlyAnew is true if no fault is more than a cache that begins anew, or tells all again. Then nothing is undone to be
// done again.
func (r *run) onlyAnew() bool {
	return !slices.ContainsFunc(r.schedule, func(d deviation) bool { return !anewFaults.has(d.fault) })
}

var anewFaults = setOf(FaultResync, FaultListOrder, FaultStaleStart, FaultRestart)

// orphan is true for an object all of whose owners are gone, or are orphans themselves.
func (r *run) orphan(obj client.Object) bool { return r.orphanWithin(obj, 10) }

// orphanWithin looks no further up than that: owners may own each other.
func (r *run) orphanWithin(obj client.Object, depth int) bool {
	if depth == 0 {
		return false
	}
	for _, owner := range obj.GetOwnerReferences() {
		group, err := schema.ParseGroupVersion(owner.APIVersion)
		if err != nil {
			return false
		}
		for _, namespace := range []string{obj.GetNamespace(), ""} {
			stored := r.server.Get(group.WithKind(owner.Kind), types.NamespacedName{Namespace: namespace, Name: owner.Name})
			if stored != nil && stored.GetUID() == owner.UID && !r.orphanWithin(stored, depth-1) {
				return false
			}
		}
	}
	return len(obj.GetOwnerReferences()) > 0
}

// observe looks at a change of the state.
func (r *run) observe(e memapi.Event) {
	if r.acting == "user" {
		r.unsettled[e.Key]++
	}
	t := thingOf(e.Kind, e.Object)
	mine := r.acting == byProcess
	switch {
	case e.Type == watch.Added && mine:
		r.own[e.Object.GetUID()] = true
		if r.orphan(e.Object) {
			break // the garbage collector takes it, nobody could know
		}
		r.made.created[t]++
		r.made.live[t]++
		r.made.most[t] = max(r.made.most[t], r.made.live[t])
	case e.Type == watch.Deleted:
		if r.own[e.Object.GetUID()] {
			r.made.live[t]--
		}
		if mine && (e.Old == nil || e.Old.GetDeletionTimestamp() == nil) {
			r.made.deleted[t]++
		}
	case e.Type == watch.Modified && mine && e.Object.GetDeletionTimestamp() != nil && e.Old.GetDeletionTimestamp() == nil:
		r.made.deleted[t]++
	}
	if mine {
		r.effects++
		r.lastEffect = eventNames[e.Type] + " " + e.Kind.Kind + " " + nameOf(e.Key)
	}
	if e.Kind == r.plan.primary {
		r.observePrimary(e)
	}
}

// observePrimary looks at what the status of a primary object tells.
func (r *run) observePrimary(e memapi.Event) {
	if r.acting == byProcess && slices.ContainsFunc(e.Object.GetFinalizers(), func(f string) bool {
		return nilcheck.IsNil(e.Old) || !slices.Contains(e.Old.GetFinalizers(), f)
	}) {
		r.finalized[e.Kind.Kind+" "+nameOf(e.Key)] = true
	}
	if e.Type != watch.Modified || r.acting != byProcess {
		return
	}
	before, after := statusOf(e.Old), statusOf(e.Object)
	name := e.Kind.Kind + " " + nameOf(e.Key)
	generation := e.Object.GetGeneration()
	switch {
	case after.observed > generation:
		r.violate(Violation{
			Oracle: OracleStatus, Cause: CauseObservedGeneration, About: name,
			Message: fmt.Sprintf("%s: observedGeneration is %d, of generation %d", name, after.observed, generation),
		})
	case after.observed < before.observed && !r.late:
		r.violate(Violation{
			Oracle: OracleStatus, Cause: CauseObservedGeneration, About: name,
			Message: fmt.Sprintf("%s: observedGeneration goes from %d back to %d", name, before.observed, after.observed),
		})
	}
	for _, condition := range after.conditions {
		if condition.ObservedGeneration > generation {
			r.violate(
				Violation{
					Oracle: OracleStatus,
					Cause:  CauseObservedGeneration,
					About:  name,
					Message: fmt.Sprintf("%s: condition %s: observedGeneration is "+
						"%d, of generation %d",
						name, condition.Type, condition.ObservedGeneration, generation),
				},
			)
		}
		old := meta.FindStatusCondition(before.conditions, condition.Type)
		if old != nil && old.Status == condition.Status && !old.LastTransitionTime.IsZero() &&
			!old.LastTransitionTime.Equal(&condition.LastTransitionTime) {
			r.violate(
				Violation{
					Oracle: OracleStatus,
					Cause:  CauseTransitionTime,
					About:  name,
					Message: fmt.Sprintf("%s: condition %s: lastTransitionTime "+
						"changes, but the status remains %s",
						name, condition.Type, condition.Status),
				},
			)
		}
	}
	r.observeReady(e, before, after)
}

// touchCloud looks at a change of the system outside.
func (r *run) touchCloud(verb, key string, existed bool) {
	if r.onlyAnew() && r.primaryIsThere() {
		t := thing{kind: schema.GroupVersionKind{Kind: "cloud"}, name: key}
		if !existed {
			r.made.created[t]++
		} else if verb == "delete" {
			r.made.deleted[t]++
		}
	}
	r.changes++
	r.effects++
	r.lastEffect = "cloud " + verb + " " + key
	r.stir()
	if verb == "delete" {
		return
	}
	r.observeOutside(verb, key)
}
