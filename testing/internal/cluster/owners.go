// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// owner returns the object that an owner reference of the case refers to. It returns nil if the case does not have it,
// or has another object with that name.
func (a *API) owner(ref metav1.OwnerReference, namespace string) *record {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil
	}
	for _, namespace := range []string{namespace, ""} {
		owner := a.records[objectID{version.Group, ref.Kind, namespace, ref.Name}]
		if owner != nil && owner.given.GetUID() == ref.UID {
			return owner
		}
	}
	return nil
}

// realOwners splits owner references into those to send to the cluster, translated, and those to objects that the
// cluster does not have. The cluster would refuse some of the latter, and garbage-collect the object because of others.
func (a *API) realOwners(
	refs []metav1.OwnerReference, namespace string,
) (known, foreign []metav1.OwnerReference) {
	for _, ref := range refs {
		if owner := a.owner(ref, namespace); owner != nil {
			ref.UID = owner.uid
			known = append(known, ref)
		} else {
			foreign = append(foreign, ref)
		}
	}
	return known, foreign
}

// shownOwners returns the owner references of a live object as the case knows them, in the order in which the case set
// them.
func (a *API) shownOwners(rec *record, live *unstructured.Unstructured) []metav1.OwnerReference {
	var shown []metav1.OwnerReference
	for _, ref := range live.GetOwnerReferences() {
		if owner := a.byUID[ref.UID]; owner != nil {
			ref.UID = owner.given.GetUID()
		}
		shown = append(shown, ref)
	}
	shown = append(shown, rec.foreign...)
	position := func(ref metav1.OwnerReference) int {
		if i := slices.IndexFunc(rec.owners, func(set metav1.OwnerReference) bool { return sameOwner(set, ref) }); i >= 0 {
			return i
		}
		return len(rec.owners)
	}
	slices.SortStableFunc(shown, func(x, y metav1.OwnerReference) int { return cmp.Compare(position(x), position(y)) })
	return shown
}

func sameOwner(x, y metav1.OwnerReference) bool {
	return x.UID == y.UID && x.Kind == y.Kind && x.Name == y.Name
}

// hideOwners translates the owner references of an object for the cluster, and returns those that are not sent.
func (a *API) hideOwners(u *unstructured.Unstructured) (foreign []metav1.OwnerReference) {
	refs := u.GetOwnerReferences()
	if len(refs) == 0 {
		return nil
	}
	known, foreign := a.realOwners(refs, u.GetNamespace())
	u.SetOwnerReferences(known)
	return foreign
}

// realUID returns the UID on the server for a UID of the case. Other UIDs are returned unchanged.
func (a *API) realUID(shown types.UID) types.UID {
	if shown != "" {
		for _, rec := range a.records {
			if rec.given.GetUID() == shown {
				return rec.uid
			}
		}
	}
	return shown
}
