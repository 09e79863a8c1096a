// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CollectionType is what the garbage collector, or the controller of namespaces, does.
type CollectionType string

const (
	// DeleteOrphan deletes an object that had owners and has none left, or whose last owners wait for it to go.
	DeleteOrphan CollectionType = "delete"
	// DropOwners removes references to owners that are gone, or going, from an object that has others.
	DropOwners CollectionType = "drop owners"
	// Release removes references to an owner that was deleted on condition that its dependents stay.
	Release CollectionType = "release"
	// Unblock has an object whose owners wait for it to go not keep them any more, because something that it owns waits as
	// well, or has: they may own each other. A collector does not notice that an object has ceased to wait.
	Unblock CollectionType = "unblock"
	// FinishDeletion removes the finalizer of an owner that waited for its dependents: to go, or to be released.
	FinishDeletion CollectionType = "finish deletion"
	// DeleteContent deletes an object because its namespace goes.
	DeleteContent CollectionType = "delete content"
	// FinishNamespace removes the finalizer of a namespace that is empty.
	FinishNamespace CollectionType = "finish namespace"
)

// Collection is one thing that the garbage collector, or the controller of namespaces, has to do about an object.
type Collection struct {
	Type CollectionType
	Kind schema.GroupVersionKind
	Key  client.ObjectKey
	// UID is that of the object, which may have been replaced by another one when its turn comes.
	UID types.UID

	owners []types.UID // to be dropped
	policy metav1.DeletionPropagation
}

// Garbage returns what the garbage collector and the controller of namespaces would do next, always in the same order.
// It does not change anything. What becomes possible only by one of these steps is not among them.
func (s *Server) Garbage() []Collection {
	if s.garbageVersion == s.version {
		return s.garbage
	}
	var garbage []Collection
	for _, t := range s.sorted {
		for _, r := range t.sorted {
			if c, ok := s.collection(t, r); ok {
				garbage = append(garbage, c)
			}
		}
	}
	s.garbage, s.garbageVersion = s.terminating(garbage), s.version
	return s.garbage
}

// collection returns what the garbage collector has to do about an object, if anything.
func (s *Server) collection(t *table, r *record) (Collection, bool) {
	c := Collection{Kind: t.kind.GroupVersionKind, Key: r.key, UID: r.uid}
	var released, gone, going []types.UID
	solid := 0
	for _, ref := range r.object.GetOwnerReferences() {
		switch s.ownerState(t, r, ref) {
		case ownerReleases:
			released = append(released, ref.UID)
			solid++
		case ownerGone:
			gone = append(gone, ref.UID)
		case ownerWaits:
			going = append(going, ref.UID)
		default:
			solid++
		}
	}
	if len(released) > 0 { // whatever else becomes of it
		c.Type, c.owners = Release, released
		return c, true
	}
	finalizers := r.object.GetFinalizers()
	if r.object.GetDeletionTimestamp() != nil {
		c.Type = FinishDeletion
		switch {
		case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
			return c, len(s.dependents(r.uid, false)) == 0
		case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
			return c, len(s.dependents(r.uid, true)) == 0
		}
		return c, false
	}
	switch c.owners = slices.Concat(gone, going); {
	case len(c.owners) == 0:
		return c, false
	case solid > 0:
		c.Type = DropOwners
		return c, true
	}
	c.Type, c.owners, c.policy = DeleteOrphan, nil, metav1.DeletePropagationBackground
	var dependents []*record
	if len(going) > 0 {
		dependents = s.dependents(r.uid, false)
	}
	switch {
	case slices.ContainsFunc(dependents, func(d *record) bool { return d.waited }) &&
		slices.ContainsFunc(r.object.GetOwnerReferences(), blocks):
		c.Type = Unblock
	case len(dependents) > 0:
		c.policy = metav1.DeletePropagationForeground
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		c.policy = metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		c.policy = metav1.DeletePropagationForeground
	}
	return c, true
}

// waits reports whether an object is being deleted once its dependents are.
func (r *record) waits() bool {
	return r.object.GetDeletionTimestamp() != nil &&
		slices.Contains(r.object.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// blocks reports whether an owner waits for what refers to it.
func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// ownerState is what the garbage collector makes of a reference to an owner.
type ownerState int

const (
	ownerThere    ownerState = iota // or not known to be gone
	ownerGone                       // there is none with that UID
	ownerWaits                      // is being deleted once its dependents are
	ownerReleases                   // is being deleted once its dependents have other owners, or none
)

func (s *Server) ownerState(t *table, r *record, ref metav1.OwnerReference) ownerState {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return ownerThere
	}
	kind, served := s.registry.For(gv.WithKind(ref.Kind))
	if !served || kind.Namespaced && !t.kind.Namespaced {
		return ownerThere // a collector cannot look for it
	}
	key := client.ObjectKey{Name: ref.Name}
	if kind.Namespaced {
		key.Namespace = r.key.Namespace
	}
	for _, owners := range s.sorted {
		owner := owners.objects[key]
		if owner == nil || owner.uid != ref.UID || owners.kind.GroupKind() != kind.GroupKind() {
			continue
		}
		if owner.object.GetDeletionTimestamp() == nil {
			return ownerThere
		}
		finalizers := owner.object.GetFinalizers()
		switch {
		case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
			return ownerReleases
		case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
			return ownerWaits
		}
		return ownerThere
	}
	return ownerGone
}

// dependents returns the objects that an owner has, or only those that keep it from going.
func (s *Server) dependents(owner types.UID, blocking bool) []*record {
	var found []*record
	for _, t := range s.sorted {
		for _, r := range t.sorted {
			for _, ref := range r.object.GetOwnerReferences() {
				if ref.UID == owner && (!blocking || blocks(ref)) {
					found = append(found, r)
					break
				}
			}
		}
	}
	return found
}

// terminating adds what there is to do about namespaces that are being deleted: their content has to go, pods first,
// and then their finalizer.
func (s *Server) terminating(garbage []Collection) []Collection {
	namespaces := s.tables[namespaceKind]
	if namespaces == nil {
		return garbage
	}
	for _, ns := range namespaces.sorted {
		if ns.object.GetDeletionTimestamp() == nil || len(namespaceFinalizers(ns.object)) == 0 {
			continue
		}
		content, pods := s.content(ns.key.Name)
		switch {
		case len(content) == 0:
			garbage = append(garbage, Collection{Type: FinishNamespace, Kind: namespaceKind, Key: ns.key, UID: ns.uid})
			continue
		case pods > 0:
			content = slices.DeleteFunc(content, func(c Collection) bool { return c.Kind != podKind })
		}
		for _, c := range content {
			// The garbage collector may have the same in mind, and need not do it then.
			i := slices.IndexFunc(garbage, func(other Collection) bool { return other.UID == c.UID })
			if obj := s.Get(c.Kind, c.Key); obj.GetDeletionTimestamp() == nil && i < 0 {
				garbage = append(garbage, c)
			}
		}
	}
	return garbage
}

// content returns what it takes to delete everything in a namespace, and how many pods are there.
func (s *Server) content(namespace string) (content []Collection, pods int) {
	for _, t := range s.sorted {
		if !t.kind.Namespaced {
			continue
		}
		for _, r := range t.sorted {
			if r.key.Namespace != namespace {
				continue
			}
			if t.kind.GroupVersionKind == podKind {
				pods++
			}
			content = append(content, Collection{
				Type: DeleteContent, Kind: t.kind.GroupVersionKind, Key: r.key, UID: r.uid,
				policy: metav1.DeletePropagationBackground,
			})
		}
	}
	return content, pods
}
