// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// NewObject returns the identity of an object that is not read or written with the client of a [Cluster]. The versions
// of such objects must not be compared with the versions of objects in caches.
func NewObject(kind schema.GroupKind, key types.NamespacedName) Object { return Object{nil, kind, key} }

// NoteWrite records a write of such an object. The version is the last known one if it is a deletion.
func (j *Journal) NoteWrite(object Object, version string, generation int64, isDeletion bool) {
	effect := stored
	if isDeletion {
		effect = deleted
	}
	j.add(write{
		kind: object.Kind, key: object.NamespacedName, version: version, generation: generation, effect: effect,
	})
}

// NoteRead records the version of such an object that was read, if the journal records reads.
func (j *Journal) NoteRead(object Object, version string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.inspectsReads() {
		return
	}
	if reads := j.recorded().reads; len(reads) < MaxReads {
		reads[object] = version
	}
}
