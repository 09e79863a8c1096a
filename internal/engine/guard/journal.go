// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Journal records the writes of a request. The zero value is empty and ready to use.
type Journal struct {
	mu     sync.Mutex
	writes []write
	// uncertain reports whether the outcome of a write is unknown.
	uncertain bool
	// live reports whether the request reads from the API server.
	live bool
	// recordReads reports whether the caches must observe what this request reads before the next request reads from them:
	// the result may stem from a write with an unknown outcome.
	recordReads bool
	// timedOut reports whether the request was deferred for the longest time.
	timedOut bool
	// unseen reports whether the request depends on an object that is missing in the caches.
	unseen bool
	// inspectsAll reports whether reads and changes of objects are recorded, and inspectsChanges whether changes are.
	inspectsAll, inspectsChanges bool
	// excluded is an object that was written before and that the cache leaves out, or nil.
	excluded *Object
	// inspection is nil until there is something to record.
	inspection *inspection
}

// unseen is the journal of a request that has ended.
type unseen struct {
	Journal
	// since is the time when the request ended.
	since time.Time
	// blocked is the time when the request was first deferred because of these writes, and polls the number of checks
	// since.
	blocked time.Time
	polls   int
}

// effect is the effect of a write on an object.
type effect int

const (
	// stored means that the object has a new resource version.
	stored effect = iota
	// deleted means that the object is terminating or removed.
	deleted
	// removed means that a terminating object was removed.
	removed
)

type write struct {
	cluster *Cluster
	kind    schema.GroupKind
	key     types.NamespacedName
	uid     types.UID
	// version is the resource version after the write. For deletions it is the last known version.
	version string
	// generation is the generation after the write, 0 if unknown.
	generation int64
	effect     effect
	// read reports whether the object was only read from the API server.
	read bool
}

// Excluded returns an object that the controller wrote and that its cache leaves out, if that was just found.
func (j *Journal) Excluded() (Object, bool) {
	if j.excluded == nil {
		return Object{}, false
	}
	return *j.excluded, true
}

// NoteUnseen records that the request depends on an object that is missing in the caches. On a nil Journal it does
// nothing.
func (j *Journal) NoteUnseen() {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unseen = true
}

// ComesAgain reports whether the request must be repeated even without an event: an object that it depends on may be
// deleted before the caches contain it, and then they deliver no event.
func (j *Journal) ComesAgain() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.unseen || j.live
}

// Live reports whether reads must bypass the caches.
func (j *Journal) Live() bool { return j != nil && j.live }

// TimedOut reports whether the request was deferred for the longest time, and a cache still lacks a write.
func (j *Journal) TimedOut() bool { return j.timedOut }

// add records a write. Only the last of several writes to an object matters.
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

func (j *Journal) addUncertain() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.uncertain = true
}

// keep returns a copy of the rest of the journal when its request has ended, or nil if nothing was written. It is a
// copy because the journal may be part of a larger value.
func (j *Journal) keep() *unseen {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.writes) == 0 && !j.uncertain {
		return nil
	}
	return &unseen{Journal: Journal{writes: j.writes, uncertain: j.uncertain}, since: time.Now()}
}

// settle removes the writes that were observed. It returns one that was not, or false.
func (j *Journal) settle(observed func(write) bool) (write, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = slices.DeleteFunc(j.writes, observed)
	if len(j.writes) == 0 {
		return write{}, false
	}
	return j.writes[0], true
}
