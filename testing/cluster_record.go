// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// objectID is what tells an object from all others of a cluster, whatever the version it is written in.
type objectID struct {
	group, kind, namespace, name string
}

func (id objectID) String() string {
	if id.namespace == "" {
		return id.kind + " " + id.name
	}
	return id.kind + " " + id.namespace + "/" + id.name
}

// record is an object of a case: as the case knows it, and as the cluster does.
type record struct {
	id   objectID
	kind schema.GroupVersionKind
	// readerOnly hides it from Client.
	readerOnly bool
	// borrowed is for what was there before and stays. It cannot be written to.
	borrowed bool
	// changed is set when the case has written to it.
	changed bool

	// given has the metadata that the case knows.
	given *unstructured.Unstructured
	// uid and generation are those of the server, the latter as far as it was not the case that has moved it.
	uid        types.UID
	generation int64
	// versions are all that the case has seen, the last one is current.
	versions []recordVersion
	// owners are all owner references as the case has set them, foreign those of them that the cluster is not told of.
	owners, foreign []metav1.OwnerReference
	// writers are what field managers have written to it, others those of them that did so unseen by the case.
	writers map[string]string
	others  map[string]bool
	// known is what the cluster would have if nobody but the case had written to it, shown the same as the case sees it.
	known, shown *unstructured.Unstructured
}

// recordVersion is a resource version as the case and as the cluster know it.
type recordVersion struct{ shown, real string }

// givenVersion is the resource version of given objects that have none.
const givenVersion = "999"

// newRecord returns the record of an object that the case gave and the server has made of it.
func newRecord(id objectID, given, live *unstructured.Unstructured, firstVersion string) *record {
	return &record{
		id: id, kind: live.GroupVersionKind(), given: given, uid: live.GetUID(), generation: live.GetGeneration(),
		others: map[string]bool{}, versions: []recordVersion{{shown: firstVersion, real: live.GetResourceVersion()}},
	}
}

func (r *record) current() recordVersion { return r.versions[len(r.versions)-1] }

// version notes the version that an own write has led to.
func (r *record) version(live *unstructured.Unstructured) {
	current, real := r.current(), live.GetResourceVersion()
	// What goes with its last finalizer gets no further version from a server, but from the API in memory.
	isGone := live.GetDeletionTimestamp() != nil && len(live.GetFinalizers()) == 0
	if current.real == real && !isGone {
		return
	}
	// As the API in memory does, which refuses writes to objects whose version is no number.
	number, err := strconv.ParseUint(current.shown, 10, 64)
	if err != nil {
		number, _ = strconv.ParseUint(givenVersion, 10, 64)
	}
	r.versions = append(r.versions, recordVersion{shown: strconv.FormatUint(number+1, 10), real: real})
}

// realVersion returns what the cluster calls a version of the case.
func (r *record) realVersion(shown string) string {
	for i := len(r.versions) - 1; i >= 0; i-- {
		if r.versions[i].shown == shown {
			return r.versions[i].real
		}
	}
	return shown
}

// show sets the metadata of an object that the server has returned to what the case knows.
func (r *record) show(u *unstructured.Unstructured) {
	u.SetResourceVersion(r.current().shown)
	u.SetManagedFields(r.given.GetManagedFields())
	if u.GetDeletionTimestamp() != nil {
		if given := r.given.GetDeletionTimestamp(); given != nil {
			u.SetDeletionTimestamp(given)
		}
		u.SetDeletionGracePeriodSeconds(r.given.GetDeletionGracePeriodSeconds())
	}
	u.SetUID(r.given.GetUID())
	u.SetCreationTimestamp(r.given.GetCreationTimestamp())
	u.SetGeneration(r.given.GetGeneration() + u.GetGeneration() - r.generation)
}

// hide sets the metadata of an object that the case sends to what the server knows.
func (r *record) hide(u *unstructured.Unstructured) {
	if version := u.GetResourceVersion(); version != "" {
		u.SetResourceVersion(r.realVersion(version))
	}
	if uid := u.GetUID(); uid != "" && uid == r.given.GetUID() {
		u.SetUID(r.uid)
	}
	if created := u.GetCreationTimestamp(); created.Equal(new(r.given.GetCreationTimestamp())) {
		// The server keeps the one it has.
		u.SetCreationTimestamp(metav1.Time{})
	}
	// Likewise.
	u.SetManagedFields(nil)
}

// newUnstructured returns an object with nothing but an identity.
func newUnstructured(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
