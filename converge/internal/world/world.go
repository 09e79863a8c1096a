// SPDX-License-Identifier: Apache-2.0

// Package world is what is outside of the processes in a run: the API server, the external system, and the clock. It
// knows who has made which object, and keeps a trace: who has changed what, and how reconciles and calls have ended.
// It does not judge, and does not know what makes processes act.
package world

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
	"trueup.dev/internal/memapi/kinds"
)

// World is everything outside of the processes: the API server, the external system, and the clock.
type World struct {
	// Primary is the kind of the primary objects. In an upgrade it is the kind of the version that runs.
	Primary schema.GroupVersionKind
	// IsProgram reports whether a client belongs to a process.
	IsProgram func(client string) bool
	// Random are the names that contain random letters.
	Random state.RandomNames
	// ReadOutside returns the content of external systems.
	ReadOutside func() (state.Outside, error)

	registry *kinds.Registry
	begin    time.Time
	// Ended is the time of the end of the run, or 0.
	Ended time.Duration
	// Over is set at the end: nothing acts any more.
	Over bool

	Server *memapi.Server
	// User is the client of the users, and Other is another client that interferes.
	User, Other client.Client
	Cloud       Cloud
	// Given is the content of external systems at the start.
	Given state.Outside
	// Generated are the names that were generated so far.
	Generated state.GeneratedNames
	// primaries are the UIDs of primary objects, of each name the last one: it is known when the object no longer exists.
	primaries state.GeneratedNames

	// LateWrite is set while a write takes effect late: one of an earlier process, or one during which its process was
	// paused.
	LateWrite bool
	// Electing is set while a process writes the lease of its leader election, and leases are these leases. They are
	// renewed all the time: no oracle sees them.
	Electing bool
	leases   map[types.UID]bool
	// Own are the objects that were created by the process, or by a fault in its place.
	Own map[types.UID]bool
	// Disturbing is set while users disturb, and foreign are the objects that they have created that way.
	Disturbing bool
	Foreign    map[types.UID]bool
	// Forwarded is the version up to which watch events were forwarded to caches and actors.
	Forwarded int64
}

// NewWorld returns a world in which nothing exists. The caller sets its first fields.
func NewWorld(o memapi.Options) World {
	server := memapi.New(o)
	return World{
		registry: o.Registry, begin: time.Now(), Server: server, User: server.Client(phrase.User),
		Other: server.Client(phrase.AnotherClient),
		Own:   map[types.UID]bool{}, Foreign: map[types.UID]bool{}, leases: map[types.UID]bool{},
	}
}

// Born records a new object.
func (w *World) Born(e memapi.Event) {
	if prefix, ok := w.GeneratedFrom(e.Kind, e.Object); ok {
		w.Generated.Learn(e.Key.Name, prefix)
	}
	if w.IsProgram(e.Client) {
		w.Own[e.Object.GetUID()] = true
	}
	if w.Disturbing && e.Client == phrase.User {
		w.Foreign[e.Object.GetUID()] = true
	}
	if e.Kind == w.Primary {
		replacement := state.UidOf(w.Generated.Thing(e.Kind, e.Object))
		w.primaries = append(slices.DeleteFunc(slices.Clone(w.primaries), func(g state.GeneratedName) bool {
			return g.Replacement == replacement
		}), state.GeneratedName{Name: string(e.Object.GetUID()), Replacement: replacement})
	}
}

// Elected records a write of a lease.
func (w *World) Elected(e memapi.Event) { w.leases[e.Object.GetUID()] = true }

// Now returns the time since the start of the run, at most until its end.
func (w *World) Now() time.Duration {
	if w.Ended > 0 {
		return w.Ended
	}
	return time.Since(w.begin)
}

// Version counts the changes of the API server and of the external system.
func (w *World) Version() int64 { return w.Server.Version() + int64(w.Cloud.Version)<<32 }

// StoredFor returns a copy of the stored object that a call writes, or nil.
func (w *World) StoredFor(c *Call) client.Object {
	stored := w.Server.Get(c.GVK, client.ObjectKeyFromObject(c.Obj))
	if stored == nil {
		return nil
	}
	return WithKind(stored, c.GVK)
}

// WithKind returns a copy of a stored object that can be sent.
func WithKind(stored client.Object, gvk schema.GroupVersionKind) client.Object {
	obj := stored.DeepCopyObject().(client.Object)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj
}

// EventsOf lists the watch events of a kind.
func (w *World) EventsOf(kind schema.GroupVersionKind) []memapi.Event {
	var events []memapi.Event
	for _, e := range w.Server.Events(0) {
		if e, ok := w.Server.In(kind, e); ok {
			events = append(events, e)
		}
	}
	return events
}

// LivePrimary returns the primary object of a request if it exists, is not being deleted, and has an owner if it names
// one.
func (w *World) LivePrimary(key types.NamespacedName) client.Object {
	primary := w.Server.Get(w.Primary, key)
	if primary == nil || primary.GetDeletionTimestamp() != nil || w.Orphan(primary) {
		return nil
	}
	return primary
}

// Orphan reports whether an object names owners, and none of them exists or all are orphans themselves.
func (w *World) Orphan(obj client.Object) bool { return w.orphanWithin(obj, 10) }

// orphanWithin follows owner references up to a depth: owners may own each other.
func (w *World) orphanWithin(obj client.Object, depth int) bool {
	if depth == 0 {
		return false
	}
	for _, owner := range w.ExistingOwners(obj) {
		if !w.orphanWithin(owner, depth-1) {
			return false
		}
	}
	return len(obj.GetOwnerReferences()) > 0
}

// ExistingOwners returns the owners of an object that exist.
func (w *World) ExistingOwners(obj client.Object) []client.Object {
	var owners []client.Object
	for _, owner := range obj.GetOwnerReferences() {
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		for _, namespace := range []string{obj.GetNamespace(), ""} {
			stored := w.Server.Get(kind, types.NamespacedName{Namespace: namespace, Name: owner.Name})
			if stored != nil && stored.GetUID() == owner.UID {
				owners = append(owners, stored)
				break
			}
		}
	}
	return owners
}

// LeftOver reports whether the process has created an object that belongs to nothing: neither to an object that another
// client has created, nor to one that belongs to such an object.
func (w *World) LeftOver(obj client.Object) bool { return w.leftOverWithin(obj, 10) }

// leftOverWithin follows owner references up to a depth: owners may own each other.
func (w *World) leftOverWithin(obj client.Object, depth int) bool {
	if !w.Own[obj.GetUID()] {
		return false
	}
	if depth == 0 {
		return true
	}
	for _, owner := range w.ExistingOwners(obj) {
		if !w.leftOverWithin(owner, depth-1) {
			return false
		}
	}
	return true
}

// Snapshot returns the present state.
func (w *World) Snapshot() *state.Snapshot {
	s := &state.Snapshot{
		Cloud: maps.Clone(w.Cloud.Values), Outside: w.Outside(), Generated: w.Generated, Primaries: w.primaries,
		Foreign: w.Foreign,
	}
	for _, kind := range w.Server.Kinds() {
		if kind.Group == "" && kind.Kind == "Namespace" {
			continue
		}
		objects := w.Server.List(kind)
		if kind.Kind == "Lease" && len(w.leases) > 0 {
			objects = slices.DeleteFunc(slices.Clone(objects), func(obj client.Object) bool { return w.leases[obj.GetUID()] })
		}
		s.Kinds = append(s.Kinds, kind)
		s.Objects = append(s.Objects, objects)
	}
	return s
}

// GeneratedFrom returns the prefix of a name that the API server has generated, or the reconciler at random.
func (w *World) GeneratedFrom(kind schema.GroupVersionKind, obj client.Object) (prefix string, ok bool) {
	if state.HasGeneratedName(obj) {
		return obj.GetGenerateName(), true
	}
	if len(w.Random) == 0 {
		return "", false
	}
	prefix, _, ok = state.CutRandom(obj.GetName())
	return prefix, ok && w.Random[state.RandomName{Kind: kind, Prefix: w.Generated.Replace(prefix)}]
}

// Outside is the content of external systems. That it can be encoded was checked at the start of the run.
func (w *World) Outside() state.Outside {
	content, err := w.ReadOutside()
	if err != nil {
		return state.Outside{Text: err.Error(), Values: map[string]any{"": err.Error()}}
	}
	return content
}

// IsShownAs reports whether a kind is another version of the kind of an event, or the same.
func (w *World) IsShownAs(kind schema.GroupVersionKind, e memapi.Event) bool {
	return kind == e.Kind || kind.GroupKind() == e.Kind.GroupKind() && w.severalVersions(kind)
}

func (w *World) severalVersions(kind schema.GroupVersionKind) bool {
	k, ok := w.registry.For(kind)
	return ok && k.Versions != nil && k.Versions.Several()
}

// OwnersOf returns the UIDs of the owners of an object.
func OwnersOf(obj client.Object) []types.UID {
	var uids []types.UID
	for _, owner := range obj.GetOwnerReferences() {
		uids = append(uids, owner.UID)
	}
	return uids
}

// IsOwnedBy reports whether an object has an owner reference with a UID.
func IsOwnedBy(obj client.Object, uid types.UID) bool { return slices.Contains(OwnersOf(obj), uid) }
