// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/nilcheck"
)

// actorState is an actor in a run.
type actorState struct {
	actorOf

	client client.Client
	// due are the objects that it has to look at, and late those that it looks at when all else is quiet.
	due, late []types.NamespacedName
}

// maxActs is how often actors act in a run. More than that, and they work against each other, or against the
// reconciler.
const maxActs = 2000

var actorFaults = faultsAt(atActor)

// tellActors has the actors know of an event, and the garbage collector.
func (r *run) tellActors(e memapi.Event) {
	if e.Type == watch.Deleted || e.Object.GetDeletionTimestamp() != nil || len(e.Object.GetOwnerReferences()) > 0 &&
		newOwners(e) {
		r.rubbish = true
	}
	if e.Type == watch.Deleted {
		return
	}
	for _, a := range r.actors {
		if a.kind != e.Kind || slices.Contains(a.due, e.Key) || slices.Contains(a.late, e.Key) {
			continue
		}
		if r.slow {
			a.late = append(a.late, e.Key)
			continue
		}
		switch r.meet(site{"act " + a.Name, e.Kind.Kind, keyOf(e.Object)}, actorFaults) {
		case FaultLate:
			a.late = append(a.late, e.Key)
			r.log.fault(r, a.Name, "is late with "+e.Kind.Kind+" "+nameOf(e.Key), FaultLate)
		case FaultEarly:
			r.log.fault(r, a.Name, "is quick with "+e.Kind.Kind+" "+nameOf(e.Key), FaultEarly)
			r.act(a, e.Key)
		default:
			a.due = append(a.due, e.Key)
		}
	}
}

// newOwners is true for an object that has other owners than before.
func newOwners(e memapi.Event) bool {
	return nilcheck.IsNil(e.Old) || !slices.Equal(ownersOf(e.Old), ownersOf(e.Object))
}

// actNext has an actor act, or the garbage collector.
func (r *run) actNext() bool {
	for _, a := range r.actors {
		if len(a.due) > 0 {
			key := a.due[0]
			a.due = slices.Delete(a.due, 0, 1)
			r.act(a, key)
			return true
		}
	}
	return r.rubbish && r.collect(false)
}

// lateActor has an actor act that is late.
func (r *run) lateActor() bool {
	for n := range r.actors {
		a, at := r.actors[n], 0
		if r.reverse {
			a = r.actors[len(r.actors)-1-n]
			at = max(len(a.late)-1, 0)
		}
		if len(a.late) > 0 {
			key := a.late[at]
			r.checkUnready(a.kind, key)
			a.late = slices.Delete(a.late, at, at+1)
			r.act(a, key)
			return true
		}
	}
	return len(r.spared) > 0 && r.collect(true)
}

func (r *run) act(a *actorState, key types.NamespacedName) {
	stored := r.server.Get(a.kind, key)
	if stored == nil || r.over {
		return
	}
	if r.acts++; r.acts > maxActs {
		r.violate(scenarioFailure(fmt.Sprintf("actor %s does not stop: it has acted %d times", a.Name, maxActs)))
		return
	}
	defer r.as(a.Name)()
	before := r.server.Version()
	err := a.Act(r.ctx, a.client, r.withKind(stored, a.kind))
	if err != nil || r.server.Version() != before {
		r.log.actor(r, a.Name, a.kind.Kind+" "+nameOf(key), err)
	}
	if err != nil && len(r.schedule) == 0 {
		r.violate(scenarioFailure(fmt.Sprintf("actor %s: %s %s: %v", a.Name, a.kind.Kind, nameOf(key), err)))
	}
}

// collect has the garbage collector do something, of what it is late with only if late is true.
func (r *run) collect(late bool) bool {
	for _, garbage := range r.server.Garbage() {
		name := string(garbage.Type) + " " + garbage.Kind.Kind + " " + nameOf(garbage.Key)
		if r.spared[name] && !late {
			continue
		}
		if _, known := r.spared[name]; !known && !late &&
			r.meet(site{"collect", garbage.Kind.Kind, r.keyFor(garbage.Kind, garbage.Key)}, setOf(FaultLate)) == FaultLate {
			r.log.fault(r, "gc", "is late with "+name, FaultLate)
			if r.spared == nil {
				r.spared = map[string]bool{}
			}
			r.spared[name] = true
			continue
		}
		if r.acts++; r.acts > maxActs {
			r.violate(scenarioFailure(
				fmt.Sprintf("the garbage collector does not stop: it has acted %d times, last on %s", maxActs, name),
			))
			return false
		}
		delete(r.spared, name)
		defer r.as("gc")()
		r.log.actor(r, "gc", name, r.server.Collect(garbage))
		return true
	}
	if late {
		clear(r.spared)
	}
	r.rubbish = false
	return false
}
