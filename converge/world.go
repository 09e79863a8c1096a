// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/memapi"
)

// world is everything outside of the process: the API server, the external system, and the clock.
type world struct {
	plan *plan
	// running is that of the verdict.
	running *plan
	begin   time.Time
	// ended is the time of the end of the run, or 0.
	ended time.Duration
	// over is set at the end: nothing acts any more.
	over bool

	server *memapi.Server
	// user is the client of the users, and other that of another client that interferes.
	user, other client.Client
	cloud       cloudState
	// given is the content of external systems at the start.
	given state.Outside
	// generated are the names that were generated so far.
	generated state.GeneratedNames
	// primaries are the UIDs of primary objects, of each name the last one: it is known when the object no longer exists.
	primaries state.GeneratedNames

	// lateWrite is set while an in-flight write of an earlier process takes effect.
	lateWrite bool
	// own are the objects that were created by the process, or by a fault in its place.
	own map[types.UID]bool
	// disturbing is set while users disturb, and foreign are the objects that they have created that way.
	disturbing bool
	foreign    map[types.UID]bool
	// forwarded is the version up to which watch events were forwarded to caches and actors.
	forwarded int64
}

func newWorld(p *plan, seed uint64, admission memapi.Admission, conversion memapi.Conversion) world {
	first := p.of(1)
	server := memapi.New(memapi.Options{
		Registry: first.registry, Applier: first.applier, Admission: admission, Seed: seed, Conversion: conversion,
		Versions: p.shown, TrackFields: p.ManagedFields,
	})
	return world{
		plan: p, running: first, begin: time.Now(), server: server, user: server.Client(phrase.User),
		other: server.Client(phrase.AnotherClient), own: map[types.UID]bool{}, foreign: map[types.UID]bool{},
	}
}

// born records a new object.
func (w *world) born(e memapi.Event) {
	if prefix, ok := w.generatedFrom(e.Kind, e.Object); ok {
		w.generated.Learn(e.Key.Name, prefix)
	}
	if w.plan.isProgram(e.Client) {
		w.own[e.Object.GetUID()] = true
	}
	if w.disturbing && e.Client == phrase.User {
		w.foreign[e.Object.GetUID()] = true
	}
	if e.Kind == w.running.primary {
		replacement := state.UidOf(w.generated.Thing(e.Kind, e.Object))
		w.primaries = append(slices.DeleteFunc(slices.Clone(w.primaries), func(g state.GeneratedName) bool {
			return g.Replacement == replacement
		}), state.GeneratedName{Name: string(e.Object.GetUID()), Replacement: replacement})
	}
}

// now returns the time since the start of the run, at most until its end.
func (w *world) now() time.Duration {
	if w.ended > 0 {
		return w.ended
	}
	return time.Since(w.begin)
}

// version counts the changes of the API server and of the external system.
func (w *world) version() int64 { return w.server.Version() + int64(w.cloud.version)<<32 }

// storedFor returns a copy of the stored object that a call writes, or nil.
func (w *world) storedFor(c *call) client.Object {
	stored := w.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	if stored == nil {
		return nil
	}
	return withKind(stored, c.gvk)
}

// withKind returns a copy of a stored object that can be sent.
func withKind(stored client.Object, gvk schema.GroupVersionKind) client.Object {
	obj := stored.DeepCopyObject().(client.Object)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj
}

// eventsOf lists the watch events of a kind.
func (w *world) eventsOf(kind schema.GroupVersionKind) []memapi.Event {
	var events []memapi.Event
	for _, e := range w.server.Events(0) {
		if e, ok := w.server.In(kind, e); ok {
			events = append(events, e)
		}
	}
	return events
}

// livePrimary returns the primary object of a request if it exists, is not being deleted, and has an owner if it names
// one.
func (w *world) livePrimary(key types.NamespacedName) client.Object {
	primary := w.server.Get(w.running.primary, key)
	if primary == nil || primary.GetDeletionTimestamp() != nil || w.orphan(primary) {
		return nil
	}
	return primary
}

// orphan reports whether an object names owners, and none of them exists or all are orphans themselves.
func (w *world) orphan(obj client.Object) bool { return w.orphanWithin(obj, 10) }

// orphanWithin follows owner references up to a depth: owners may own each other.
func (w *world) orphanWithin(obj client.Object, depth int) bool {
	if depth == 0 {
		return false
	}
	for _, owner := range w.existingOwners(obj) {
		if !w.orphanWithin(owner, depth-1) {
			return false
		}
	}
	return len(obj.GetOwnerReferences()) > 0
}

// existingOwners returns the owners of an object that exist.
func (w *world) existingOwners(obj client.Object) []client.Object {
	var owners []client.Object
	for _, owner := range obj.GetOwnerReferences() {
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		for _, namespace := range []string{obj.GetNamespace(), ""} {
			stored := w.server.Get(kind, types.NamespacedName{Namespace: namespace, Name: owner.Name})
			if stored != nil && stored.GetUID() == owner.UID {
				owners = append(owners, stored)
				break
			}
		}
	}
	return owners
}

// leftOver reports whether the process has created an object that belongs to nothing: neither to an object that another
// client has created, nor to one that belongs to such an object.
func (w *world) leftOver(obj client.Object) bool { return w.leftOverWithin(obj, 10) }

// leftOverWithin follows owner references up to a depth: owners may own each other.
func (w *world) leftOverWithin(obj client.Object, depth int) bool {
	if !w.own[obj.GetUID()] {
		return false
	}
	if depth == 0 {
		return true
	}
	for _, owner := range w.existingOwners(obj) {
		if !w.leftOverWithin(owner, depth-1) {
			return false
		}
	}
	return true
}

func (w *world) snapshot() *state.Snapshot {
	s := &state.Snapshot{
		Cloud: maps.Clone(w.cloud.values), Outside: w.outside(), Generated: w.generated, Primaries: w.primaries,
		Foreign: w.foreign,
	}
	for _, kind := range w.server.Kinds() {
		if kind.Group == "" && kind.Kind == "Namespace" {
			continue
		}
		s.Kinds = append(s.Kinds, kind)
		s.Objects = append(s.Objects, w.server.List(kind))
	}
	return s
}

// generatedFrom returns the prefix of a name that the API server has generated, or the reconciler at random.
func (w *world) generatedFrom(kind schema.GroupVersionKind, obj client.Object) (prefix string, ok bool) {
	if state.HasGeneratedName(obj) {
		return obj.GetGenerateName(), true
	}
	if len(w.plan.random) == 0 {
		return "", false
	}
	prefix, _, ok = state.CutRandom(obj.GetName())
	return prefix, ok && w.plan.random[state.RandomName{Kind: kind, Prefix: w.generated.Replace(prefix)}]
}
