// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// objectID identifies an object in a cluster, independent of the version of its API.
type objectID struct {
	group, kind, namespace, name string
}

func (id objectID) String() string {
	if id.namespace == "" {
		return id.kind + " " + id.name
	}
	return id.kind + " " + id.namespace + "/" + id.name
}

// record is an object of a case, as the case and as the cluster know it.
type record struct {
	id   objectID
	kind schema.GroupVersionKind
	// readerOnly hides it from the client.
	readerOnly bool
	// borrowed objects existed before the case and are kept. The case cannot write to them.
	borrowed bool
	// changed is set when the case writes to it.
	changed bool

	// given has the metadata that the case sees.
	given *unstructured.Unstructured
	// uid is the UID on the server. generation is subtracted from the generation of the server, and the given one added,
	// for the generation that the case sees.
	uid        types.UID
	generation int64
	// versions are all resource versions that the case has seen, the current one last.
	versions []recordVersion
	// owners are all owner references that the case has set, foreign those that are not sent to the cluster.
	owners, foreign []metav1.OwnerReference
	// writers are the writes of field managers, others the managers whose writes are hidden from the case.
	writers map[string]string
	others  map[string]bool
	// known is the object in the cluster without the writes of other clients, shown the same object as the case sees it.
	known, shown *unstructured.Unstructured
}

// recordVersion is a resource version as the case and as the cluster know it.
type recordVersion struct{ shown, real string }

// givenVersion is the resource version of given objects that have none.
const givenVersion = "999"

// newRecord returns the record of an object that the case sent and the server returned as live.
func newRecord(id objectID, given, live *unstructured.Unstructured, firstVersion string) *record {
	return &record{
		id: id, kind: live.GroupVersionKind(), given: given, uid: live.GetUID(), generation: live.GetGeneration(),
		others: map[string]bool{}, versions: []recordVersion{{shown: firstVersion, real: live.GetResourceVersion()}},
	}
}

func (r *record) current() recordVersion { return r.versions[len(r.versions)-1] }

// version records the resource version after a write of the case.
func (r *record) version(live *unstructured.Unstructured) {
	current, real := r.current(), live.GetResourceVersion()
	// the removal with the last finalizer is a version in memory, but not on a server
	isGone := live.GetDeletionTimestamp() != nil && len(live.GetFinalizers()) == 0
	if current.real == real && !isGone {
		return
	}
	// the API in memory refuses writes to objects whose version is not a number
	number, err := strconv.ParseUint(current.shown, 10, 64)
	if err != nil {
		number, _ = strconv.ParseUint(givenVersion, 10, 64)
	}
	r.versions = append(r.versions, recordVersion{shown: strconv.FormatUint(number+1, 10), real: real})
}

// realVersion returns the resource version of the cluster for one of the case.
func (r *record) realVersion(shown string) string {
	for i := len(r.versions) - 1; i >= 0; i-- {
		if r.versions[i].shown == shown {
			return r.versions[i].real
		}
	}
	return shown
}

// show translates the metadata of an object from the cluster for the case.
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

// hide translates the metadata of an object from the case for the cluster.
func (r *record) hide(u *unstructured.Unstructured) {
	if version := u.GetResourceVersion(); version != "" {
		u.SetResourceVersion(r.realVersion(version))
	}
	if uid := u.GetUID(); uid != "" && uid == r.given.GetUID() {
		u.SetUID(r.uid)
	}
	if created := u.GetCreationTimestamp(); created.Equal(new(r.given.GetCreationTimestamp())) {
		// the server keeps its own
		u.SetCreationTimestamp(metav1.Time{})
	}
	// likewise
	u.SetManagedFields(nil)
}

// newUnstructured returns an object with only an identity.
func newUnstructured(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
