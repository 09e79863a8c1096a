// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CollectionType is the type of a step of the garbage collector or the namespace controller.
type CollectionType string

const (
	// DeleteOrphan deletes an object whose owners no longer exist, or whose last owners wait for its deletion.
	DeleteOrphan CollectionType = "delete"
	// DropOwners removes references to owners that no longer exist or wait for the deletion, from an object that has
	// other owners.
	DropOwners CollectionType = "drop owners"
	// Release removes references to an owner that is being deleted with orphan propagation.
	Release CollectionType = "release"
	// Unblock sets blockOwnerDeletion to false in an object whose owners wait for its deletion, because one of its
	// dependents waits for its own dependents too: there may be a cycle. A collector does not notice when an object stops
	// waiting.
	Unblock CollectionType = "unblock"
	// FinishDeletion removes the finalizer of an owner that has waited until its dependents were deleted or released.
	FinishDeletion CollectionType = "finish deletion"
	// DeleteContent deletes an object because its namespace is being deleted.
	DeleteContent CollectionType = "delete content"
	// FinishNamespace removes the finalizer of an empty namespace.
	FinishNamespace CollectionType = "finish namespace"
)

// Collection is a step of the garbage collector or the namespace controller for one object.
type Collection struct {
	Type CollectionType
	Kind schema.GroupVersionKind
	Key  client.ObjectKey
	// UID is the UID of the object. Another object may have replaced it when the step is executed.
	UID types.UID

	owners []types.UID // to be removed
	policy metav1.DeletionPropagation
}

// Garbage returns the next steps of the garbage collector and the namespace controller, in a fixed order. It changes
// nothing. Steps that require another step are not included.
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

// collection returns the next step of the garbage collector for an object, if any.
func (s *Server) collection(t *table, r *record) (Collection, bool) {
	c := Collection{Kind: t.kind.GroupVersionKind, Key: r.key, UID: r.uid}
	var released, missing, waiting []types.UID
	solid := 0
	for _, ref := range r.object.GetOwnerReferences() {
		switch s.ownerState(t, r, ref) {
		case ownerReleases:
			released = append(released, ref.UID)
			solid++
		case ownerMissing:
			missing = append(missing, ref.UID)
		case ownerWaits:
			waiting = append(waiting, ref.UID)
		default:
			solid++
		}
	}
	if len(released) > 0 { // takes precedence
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
	switch c.owners = slices.Concat(missing, waiting); {
	case len(c.owners) == 0:
		return c, false
	case solid > 0:
		c.Type = DropOwners
		return c, true
	}
	c.Type, c.owners, c.policy = DeleteOrphan, nil, metav1.DeletePropagationBackground
	var dependents []*record
	if len(waiting) > 0 {
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

// waits reports whether the deletion of an object waits for its dependents.
func (r *record) waits() bool {
	return r.object.GetDeletionTimestamp() != nil &&
		slices.Contains(r.object.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// blocks reports whether a dependent blocks the deletion of its owner.
func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// ownerState is the state of the owner in an owner reference.
type ownerState int

const (
	ownerExists   ownerState = iota // or cannot be looked up
	ownerMissing                    // no object with that UID exists
	ownerWaits                      // is being deleted after its dependents
	ownerReleases                   // is being deleted after its dependents are released
)

func (s *Server) ownerState(t *table, r *record, ref metav1.OwnerReference) ownerState {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return ownerExists
	}
	kind, served := s.registry.For(gv.WithKind(ref.Kind))
	if !served || kind.Namespaced && !t.kind.Namespaced {
		return ownerExists // the kind is not served
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
			return ownerExists
		}
		finalizers := owner.object.GetFinalizers()
		switch {
		case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
			return ownerReleases
		case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
			return ownerWaits
		}
		return ownerExists
	}
	return ownerMissing
}

// dependents returns the dependents of an owner, or only those that block its deletion.
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

// terminating adds the steps for namespaces that are being deleted: first their content is deleted, beginning with
// pods, then their finalizer is removed.
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
			// the garbage collector may already have this step
			i := slices.IndexFunc(garbage, func(other Collection) bool { return other.UID == c.UID })
			if obj := s.Get(c.Kind, c.Key); obj.GetDeletionTimestamp() == nil && i < 0 {
				garbage = append(garbage, c)
			}
		}
	}
	return garbage
}

// content returns the steps that delete all objects in a namespace, and the number of its pods.
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

// collector is the name of the garbage collector, as client and as field manager.
const collector = "kube-controller-manager"

// Collect executes a step that Garbage has returned, now or earlier. It does nothing if the object no longer exists or
// has another UID. Errors are errors of a request; the step can be repeated.
func (s *Server) Collect(c Collection) error {
	t := s.tables[c.Kind]
	if t == nil || t.objects[c.Key] == nil || t.objects[c.Key].uid != c.UID {
		return nil
	}
	var err error
	switch c.Type {
	case DeleteOrphan, DeleteContent:
		err = s.delete(t, c.Key, collector, &metav1.DeleteOptions{
			PropagationPolicy: &c.policy, Preconditions: &metav1.Preconditions{UID: &c.UID},
		})
	case DropOwners, Release:
		err = s.edit(t, c, func(obj client.Object) {
			obj.SetOwnerReferences(slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()), func(
				ref metav1.OwnerReference,
			) bool {
				return slices.Contains(c.owners, ref.UID)
			}))
		})
	case Unblock:
		err = s.edit(t, c, func(obj client.Object) {
			refs := slices.Clone(obj.GetOwnerReferences())
			for i := range refs {
				if blocks(refs[i]) {
					refs[i].BlockOwnerDeletion = new(false)
				}
			}
			obj.SetOwnerReferences(refs)
		})
	case FinishDeletion:
		err = s.edit(t, c, func(obj client.Object) {
			obj.SetFinalizers(slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool {
				return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
			}))
		})
	case FinishNamespace:
		s.finalize(t, c)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// edit changes the metadata of an object.
func (s *Server) edit(t *table, c Collection, change func(client.Object)) error {
	req := request{client: collector, manager: collector}
	_, err := s.update(t, c.Key, c.UID, req, func(r *record) (client.Object, error) {
		obj := r.object.DeepCopyObject().(client.Object)
		change(obj)
		return s.manage(t, r, obj, req)
	})
	return err
}

// finalize removes the finalizer of a namespace, and thereby the namespace.
func (s *Server) finalize(t *table, c Collection) {
	r := t.objects[c.Key]
	if len(r.object.GetFinalizers()) == 0 {
		s.remove(t, r, collector)
		return
	}
	obj := r.object.DeepCopyObject().(client.Object)
	clearNamespaceFinalizers(obj)
	s.put(t, c.Key, obj, r.request(collector))
}
