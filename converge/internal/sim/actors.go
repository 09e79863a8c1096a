// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/objects/nilcheck"
)

// actors are the other controllers of a run and the garbage collector. They see each change of the API server, and act
// on it later, or at once, or when everything else is idle.
type actors struct {
	*scene

	watches *watches

	list []*actorState
	// slow defers all actions until everything else is idle, and reverse performs them in the opposite order.
	slow, reverse bool
	// lateGarbage defers the garbage collector.
	lateGarbage bool
	// pendingGarbage is set if the garbage collector may have work, and deferredGarbage names what it collects when
	// everything else is idle.
	pendingGarbage  bool
	deferredGarbage map[string]bool
	acted           int
}

// actorState is an actor in a run.
type actorState struct {
	Actor

	client client.Client
	// due are the objects to act on, and deferred those to act on when everything else is idle.
	due, deferred []types.NamespacedName
}

// maxActs limits the actions of a run. Actors that need more act against each other, or against the reconciler.
const maxActs = 2000

var actorFaults = inject.SetAt(inject.AtActor)

// changed queues an object, or its controller owner, for actors and the garbage collector.
func (a *actors) changed(e memapi.Event) {
	if e.Type == watch.Deleted || e.Object.GetDeletionTimestamp() != nil ||
		len(e.Object.GetOwnerReferences()) > 0 && hasNewOwners(e) {
		a.pendingGarbage = true
	}
	for _, actor := range a.list {
		if a.world.IsShownAs(actor.Kind, e) && e.Type != watch.Deleted {
			a.queue(actor, e.Key)
		}
		if actor.Follows != nil {
			for _, obj := range a.world.Server.List(actor.Kind) {
				if actor.Follows(obj, e.Kind.GroupKind(), e.Key) {
					a.queue(actor, client.ObjectKeyFromObject(obj))
				}
			}
		}
		if e.Type != watch.Deleted && !slices.ContainsFunc(actor.Owns, func(kind schema.GroupVersionKind) bool {
			return a.world.IsShownAs(kind, e)
		}) {
			continue
		}
		for _, obj := range []client.Object{e.Old, e.Object} {
			if nilcheck.IsNil(obj) {
				continue
			}
			owner, ok := ownerOf(a.machine.Registry, actor.Kind, obj)
			if ok && a.world.Server.Get(actor.Kind, owner) != nil {
				a.queue(actor, owner)
			}
		}
	}
}

// queue queues an object for an actor, unless it is already queued.
func (a *actors) queue(actor *actorState, key types.NamespacedName) {
	if slices.Contains(actor.due, key) || slices.Contains(actor.deferred, key) {
		return
	}
	if a.slow {
		actor.deferred = append(actor.deferred, key)
		return
	}
	name := actor.Kind.Kind + " " + phrase.Name(key)
	at := inject.Site{Act: "act " + actor.Name, Kind: actor.Kind.Kind, Key: a.world.Generated.Key(key)}
	switch a.faults.at(at, actorFaults) {
	case inject.Late:
		actor.deferred = append(actor.deferred, key)
		a.trace.Fault(actor.Name, "delays "+name, inject.Late)
	case inject.Early:
		a.trace.Fault(actor.Name, "acts at once on "+name, inject.Early)
		a.act(actor, key)
	default:
		actor.due = append(actor.due, key)
	}
}

// hasNewOwners reports whether a change has set the owners of an object.
func hasNewOwners(e memapi.Event) bool {
	return nilcheck.IsNil(e.Old) || !slices.Equal(world.OwnersOf(e.Old), world.OwnersOf(e.Object))
}

// of returns the first actor of a kind, or nil.
func (a *actors) of(kind schema.GroupVersionKind) *actorState {
	for _, actor := range a.list {
		if actor.Kind == kind {
			return actor
		}
	}
	return nil
}

// actNext performs the next action of an actor or of the garbage collector, and reports whether there was one.
func (a *actors) actNext() bool {
	for _, actor := range a.list {
		if len(actor.due) > 0 {
			key := actor.due[0]
			actor.due = slices.Delete(actor.due, 0, 1)
			a.act(actor, key)
			return true
		}
	}
	return a.pendingGarbage && a.collect(false)
}

// actDeferred performs the next deferred action, and reports whether there was one.
func (a *actors) actDeferred() bool {
	for n := range a.list {
		actor, at := a.list[n], 0
		if a.reverse {
			actor = a.list[len(a.list)-1-n]
			at = max(len(actor.deferred)-1, 0)
		}
		if len(actor.deferred) > 0 {
			key := actor.deferred[at]
			a.oracles.Status.Recovering(actor.Kind, key)
			actor.deferred = slices.Delete(actor.deferred, at, at+1)
			a.act(actor, key)
			return true
		}
	}
	return len(a.deferredGarbage) > 0 && a.collect(true)
}

func (a *actors) act(actor *actorState, key types.NamespacedName) {
	stored := a.world.Server.Get(actor.Kind, key)
	if stored == nil || a.world.Over {
		return
	}
	if a.acted++; a.acted > maxActs {
		a.verdict.Violate(finding.ScenarioFailure(
			fmt.Sprintf("actor %s does not stop: it has acted %d times", actor.Name, maxActs),
		))
		return
	}
	defer a.watches.forward()
	before := a.world.Server.Version()
	err := actor.Act(context.Background(), actor.client, world.WithKind(stored, actor.Kind))
	if err != nil || a.world.Server.Version() != before {
		a.trace.Actor(actor.Name, actor.Kind.Kind+" "+phrase.Name(key), err)
	}
	if err != nil && a.faults.none() {
		a.verdict.Violate(finding.ScenarioFailure(
			fmt.Sprintf("actor %s: %s %s: %v", actor.Name, actor.Kind.Kind, phrase.Name(key), err),
		))
	}
}

// collect performs the next action of the garbage collector, also a deferred one if deferred is set.
func (a *actors) collect(deferred bool) bool {
	for _, garbage := range a.world.Server.Garbage() {
		name := string(garbage.Type) + " " + garbage.Kind.Kind + " " + phrase.Name(garbage.Key)
		if a.deferredGarbage[name] && !deferred {
			continue
		}
		if _, known := a.deferredGarbage[name]; !known && !deferred && a.delaysGarbage(garbage, name) {
			if a.deferredGarbage == nil {
				a.deferredGarbage = map[string]bool{}
			}
			a.deferredGarbage[name] = true
			continue
		}
		if a.acted++; a.acted > maxActs {
			a.verdict.Violate(finding.ScenarioFailure(
				fmt.Sprintf("the garbage collector does not stop: it has acted %d times, last on %s", maxActs, name),
			))
			return false
		}
		delete(a.deferredGarbage, name)
		defer a.watches.forward()
		if garbage.Type == memapi.Release {
			delete(a.world.Own, garbage.UID) // users have asked to keep it
			a.pendingGarbage = true          // the owner may be finished
		}
		a.trace.Actor("gc", name, a.world.Server.Collect(garbage))
		return true
	}
	if deferred {
		clear(a.deferredGarbage)
	}
	a.pendingGarbage = false
	return false
}

// delaysGarbage reports whether an action of the garbage collector is delayed.
func (a *actors) delaysGarbage(garbage memapi.Collection, name string) bool {
	at := inject.Site{Act: "collect", Kind: garbage.Kind.Kind, Key: a.world.Generated.Key(garbage.Key)}
	if a.faults.at(at, inject.SetOf(inject.Late)) == inject.Late {
		a.trace.Fault("gc", "delays "+name, inject.Late)
		return true
	}
	return a.lateGarbage
}
