// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Journal holds what a request has written. The zero value is empty and ready to use.
type Journal struct {
	mu     sync.Mutex
	writes []write
	// doubt is true when the outcome of a write is not known.
	doubt bool
	// live is true when the request reads from the API server.
	live bool
	// remembers is true when the caches have to see what this request reads, before the next one reads from them: it may be what came of a write whose
	// outcome is not known.
	remembers bool
	// unseen is true when the request depends on an object that is not in the caches.
	unseen bool
	// inspection is nil unless someone wants to know more about the request.
	inspection *inspection
}

// unseen is the journal of a request that has ended.
type unseen struct {
	Journal
	// since is when the request ended.
	since time.Time
	// blocked is when the request was first put off because of these writes, and polls how often.
	blocked time.Time
	polls   int
}

// effect is what a write does to an object.
type effect int

const (
	// stored leaves the object with a new resource version.
	stored effect = iota
	// deleted leaves the object terminating, or removes it.
	deleted
	// removed removes an object that was terminating before.
	removed
)

type write struct {
	cluster *Cluster
	kind    schema.GroupKind
	key     types.NamespacedName
	uid     types.UID
	// version is the resource version after the write, and for objects that go the last one known.
	version string
	// generation is that after the write, and 0 where it is not known.
	generation int64
	effect     effect
	// read is true for an object that was only read, from the API server.
	read bool
}

// NoteUnseen tells that the request depends on an object that is not in the caches. A nil Journal does nothing.
func (j *Journal) NoteUnseen() {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unseen = true
}

// ComesAgain is true when the request should be made again even if no event asks for it: what it depends on may be gone before the caches have it, and then
// they never tell.
func (j *Journal) ComesAgain() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.unseen || j.live
}

// Live is true when reads must not come from caches.
func (j *Journal) Live() bool { return j != nil && j.live }

// add notes a write. Of several writes to one object only the last matters.
func (j *Journal) add(w write) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, earlier := range j.writes {
		if earlier.cluster != w.cluster || earlier.kind != w.kind || earlier.key != w.key {
			continue
		}
		if earlier.uid == w.uid && older(w.version, earlier.version) {
			w.version = earlier.version
		}
		w.read = w.read && earlier.read
		w.generation = max(w.generation, earlier.generation)
		j.writes[i] = w
		return
	}
	j.writes = append(j.writes, w)
}

func (j *Journal) addDoubt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.doubt = true
}

// keep returns what is left of the journal when its request has ended: a copy, because the journal may be part of something larger. It returns nil when
// nothing was written.
func (j *Journal) keep() *unseen {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.writes) == 0 && !j.doubt {
		return nil
	}
	return &unseen{Journal: Journal{writes: j.writes, doubt: j.doubt}, since: time.Now()}
}

// settle forgets the writes that have been observed and returns one that has not, or false.
func (j *Journal) settle(observed func(write) bool) (write, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = slices.DeleteFunc(j.writes, observed)
	if len(j.writes) == 0 {
		return write{}, false
	}
	return j.writes[0], true
}
