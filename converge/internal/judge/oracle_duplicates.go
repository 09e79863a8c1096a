// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/objects/nilcheck"
)

// duplicatesOracle compares what the process has created and deleted in the whole run to the run without faults.
type duplicatesOracle struct {
	Evidence

	// Writing is the reconcile of the last write, and creators are those that have created objects with generated names.
	Writing  *world.Reconcile
	creators map[types.UID]*world.Reconcile
}

// changed counts a creation or deletion.
func (o *duplicatesOracle) changed(e memapi.Event) {
	t := o.World.Generated.Thing(e.Kind, e.Object)
	mine := o.Scenario.IsProgram(e.Client)
	if mine || o.Scenario.IsActor(e.Client) {
		o.release(e)
	}
	switch {
	case e.Type == watch.Added && mine:
		if o.World.Orphan(e.Object) {
			break // the garbage collector deletes it, which the process could not know
		}
		o.Created[t]++
		o.Live[t]++
		o.Most[t] = max(o.Most[t], o.Live[t])
		if t.Key.Name != e.Key.Name && o.Writing != nil {
			o.creators[e.Object.GetUID()] = o.Writing
		}
	case e.Type == watch.Deleted:
		if o.World.Own[e.Object.GetUID()] {
			o.Live[t]--
			if o.Scenario.IsActor(e.Client) {
				o.Lost[t]++
			}
		}
		if mine && (e.Old == nil || e.Old.GetDeletionTimestamp() == nil) {
			o.delete(t, e.Object.GetUID())
		}
	case e.Type == watch.Modified && mine && e.Object.GetDeletionTimestamp() != nil && e.Old.GetDeletionTimestamp() == nil:
		o.delete(t, e.Object.GetUID())
	}
}

// delete counts a deletion. An object with a generated name that was created by a reconcile that did not end, or
// failed, may be deleted and replaced by another one: a later reconcile cannot know that the first one is what it
// needs. It is counted nevertheless, because reconciles may also fail in the run without faults.
func (o *duplicatesOracle) delete(t state.Thing, uid types.UID) {
	if creator := o.creators[uid]; creator != nil && (!creator.Returned || creator.Err != nil) {
		o.Replaced[t]++
	}
	o.Deleted[t]++
}

// release records the finalizers that a change has removed. The last one is removed together with its object.
func (o *duplicatesOracle) release(e memapi.Event) {
	if nilcheck.IsNil(e.Old) {
		return
	}
	for _, finalizer := range e.Old.GetFinalizers() {
		if e.Type == watch.Deleted || !slices.Contains(e.Object.GetFinalizers(), finalizer) {
			o.Released[FinalizerOf{e.Kind, finalizer}] = true
		}
	}
}

// cloudChanged counts a creation or deletion in the external system.
func (o *duplicatesOracle) cloudChanged(verb, key string, existed bool) {
	t := state.Thing{
		Kind: schema.GroupVersionKind{Kind: "cloud"}, Key: o.World.Generated.Key(types.NamespacedName{Name: key}),
	}
	if !existed {
		o.Created[t]++
	} else if verb == "delete" {
		o.Deleted[t]++
	}
}

// Explain records that another client changes an object, and so its dependents, and the objects in it if it is a
// namespace.
func (o *duplicatesOracle) Explain(kind schema.GroupVersionKind, key types.NamespacedName) {
	kind = o.World.Server.Shown(kind)
	o.explainAll(kind, key, map[types.UID]bool{})
}

func (o *duplicatesOracle) explainAll(kind schema.GroupVersionKind, key types.NamespacedName, done map[types.UID]bool) {
	stored := o.World.Server.Get(kind, key)
	if stored == nil || done[stored.GetUID()] {
		return
	}
	done[stored.GetUID()] = true
	o.Explained[o.World.Generated.Thing(kind, stored)]++
	namespace := kind.Group == "" && kind.Kind == "Namespace"
	for _, dependent := range o.World.Server.Kinds() {
		for _, obj := range o.World.Server.List(dependent) {
			if namespace && obj.GetNamespace() == key.Name || world.IsOwnedBy(obj, stored.GetUID()) {
				o.explainAll(dependent, client.ObjectKeyFromObject(obj), done)
			}
		}
	}
}

// check reports what exceeds the run without faults, and the interferences of other clients. With Scenario.Desired the
// reconciler may choose names, therefore only names that it also uses without faults count.
func (o *duplicatesOracle) check(skipped []int) {
	if o.Scenario.Records || o.Failed() {
		return
	}
	for _, c := range []struct {
		cause  finding.Cause
		verb   string
		counts func(*Ledger) map[state.Thing]int
	}{
		{finding.CauseDeletedAgain, "deleted", func(l *Ledger) map[state.Thing]int { return l.Deleted }},
		{finding.CauseCreatedAgain, "created", func(l *Ledger) map[state.Thing]int { return l.Created }},
		{finding.CauseLiveAtOnce, "live at once", func(l *Ledger) map[state.Thing]int { return l.Most }},
	} {
		counts := c.counts(&o.Ledger)
		for _, t := range slices.SortedFunc(maps.Keys(counts), func(a, b state.Thing) int {
			return strings.Compare(a.String(), b.String())
		}) {
			expected := o.Scenario.expected(c.cause, c.counts, t, skipped)
			if o.excepts(finding.OracleDuplicates, t.String()) {
				continue
			}
			explained := o.Explained[t]
			if c.cause != finding.CauseLiveAtOnce {
				explained += o.Replaced[t]
			}
			if c.cause == finding.CauseCreatedAgain {
				explained += max(0, o.Lost[t]-o.Scenario.Sequence[0].Reference.Ledger.Lost[t])
			}
			if n := counts[t]; n > expected+explained && (expected > 0 || o.Running.Desired == nil) {
				o.Violate(finding.Violation{
					Oracle: finding.OracleDuplicates, Cause: c.cause, About: t.String(),
					Message: fmt.Sprintf("%s: %d %s, %d without faults", t, n, c.verb, expected),
				})
				return
			}
		}
	}
}
