// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"hash/maphash"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/guard"
)

const (
	// ConflictAt is the number of repetitions that make a conflict: the controller has restored a value, or has sent a
	// value that the server does not store.
	ConflictAt = 5
	// suspectAt is the number of repetitions from which requests are inspected in full.
	suspectAt = 2
	// conflictGap is the maximum time between two restored values. It is longer than the default resync of
	// controllers, 10 hours, because many controllers restore their values only then. refusedGap is the maximum time
	// between two refused values. It is shorter: a controller that remembers what a webhook changes forgets it after an
	// hour without use, and sends one such write then.
	conflictGap, refusedGap = 12 * time.Hour, 30 * time.Minute

	// maxHistories limits the number of histories. maxFields and maxVersions limit the size of each.
	maxHistories, maxFields, maxVersions = 10_000, 64, 64
)

// Write is a change of an object by a reconcile.
type Write struct {
	Object guard.Object
	// Before is the resource version in the cache before the write. After is the resource version after the write.
	Before, After string
	Fields        []Field
}

// Field is a field that a write changed, or that it tried to change. Values are represented by hashes.
type Field struct {
	// Path identifies the field in its object.
	Path string
	// Before is the value before the write, and After the value that the server stored.
	Before, After uint64
	// Refused reports whether the server stored another value than Requested, which the controller sent.
	Refused   bool
	Requested uint64
}

// Conflict is a field that the controller and another writer change back and forth.
type Conflict struct {
	// Write and Field are indexes of the write in [Reconcile.Changes], and of its field.
	Write, Field int
	// Refused reports whether the server does not store the value. Otherwise another client has overwritten the value
	// each time.
	Refused bool
	// Times is the number of repetitions, and Within the time between the first and the last.
	Times  int
	Within time.Duration
}

// history is what the controller has written for one request.
type history struct {
	last       time.Time
	generation int64
	versions   []version
	fields     []field
	remade     []remade

	// suspicion is nil until a write repeats an earlier one more than once. It is separate to keep histories small:
	// most objects that were ever written have one.
	*suspicion
}

type suspicion struct {
	// suspected is the time of the last write that repeated an earlier one more than once.
	suspected time.Time
	// conflicted is the time of the last write of a field with a conflict. delay, until and look are valid since then.
	conflicted time.Time
	delay      time.Duration
	until      time.Time
	look       Look
}

func (h *history) suspect(now time.Time) {
	if h.suspicion == nil {
		h.suspicion = &suspicion{}
	}
	h.suspected = now
}

// version is the resource version after the last write of an object by the controller.
type version struct {
	object  uint64
	version string
}

// field is a field that the controller has written.
type field struct {
	id    uint64 // of the object and the path
	value uint64 // that the controller has written
	// previous is the value before that. renewed counts the consecutive writes with a new value, each of which replaced
	// the value of the write before.
	previous uint64
	renewed  int
	// refused reports whether the server stored another value.
	refused  bool
	times    int
	since    time.Time
	at       time.Time
	conflict bool
}

var seed = maphash.MakeSeed()

// Hash returns a hash of a value. It is different in each process.
func Hash(value []byte) uint64 { return maphash.Bytes(seed, value) }

// requestID identifies a request. A map of hashes is smaller than a map of requests, and is read without reading names.
func requestID(req reconcile.Request) uint64 { return maphash.Comparable(seed, req) }

func objectID(object guard.Object) uint64 { return maphash.Comparable(seed, object) }

func fieldID(object uint64, path string) uint64 {
	return maphash.Comparable(seed, struct {
		object uint64
		path   string
	}{object, path})
}

// Compare is called after each reconcile, also after one that failed. It returns the new conflicts, each one once until
// it ends. It compares the fields that the reconcile has changed to the fields that earlier reconciles have changed. A
// conflict exists if the controller writes the same value repeatedly, and finds another value each time. It also
// returns the objects that the controller creates or deletes repeatedly, each one once until that ends.
//
// It forgets a resource that no longer exists.
func (d *Detector) Compare(req reconcile.Request, this Reconcile) ([]Conflict, []Remade) {
	if !this.Exists {
		d.drop(req)
		return nil, nil
	}
	wrote := false
	for range this.Journal.Written {
		wrote = true
		break
	}
	if !wrote {
		return nil, nil
	}
	id, now := requestID(req), time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.histories[id]
	if h == nil || now.Sub(h.last) > conflictGap {
		if h = d.newHistory(id, now); h == nil {
			return nil, nil
		}
		h.generation = this.Generation
	}
	found, repeated := []Conflict(nil), false
	for i, w := range this.Changes {
		// A new generation is progress, unless the conflict is about the resource itself.
		progress := this.Generation > h.generation && w.Object != this.Resource
		conflicts, again := h.compare(w, progress, now)
		for _, c := range conflicts {
			c.Write = i
			found = append(found, c)
		}
		repeated = repeated || again
	}
	again, remade := h.remake(this, now)
	h.record(this, now)
	if repeated || again {
		h.slowDown(this, now)
	}
	return found, remade
}

// Renewed returns the number of the last writes of a field that each replaced the value of the write before by a new
// one.
func (d *Detector) Renewed(req reconcile.Request, object guard.Object, path string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.histories[requestID(req)]; h != nil {
		id := fieldID(objectID(object), path)
		for _, f := range h.fields {
			if f.id == id {
				return f.renewed
			}
		}
	}
	return 0
}

// drop removes the history of a request.
func (d *Detector) drop(req reconcile.Request) {
	if d.Idle() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.histories, requestID(req))
	d.count()
}

// newHistory returns a new history, or nil if the detector has too many.
func (d *Detector) newHistory(id uint64, now time.Time) *history {
	if d.histories == nil {
		d.histories = map[uint64]*history{}
	}
	d.sweep(now)
	if len(d.histories) >= maxHistories && d.histories[id] == nil {
		return nil
	}
	h := &history{}
	d.histories[id] = h
	d.count()
	return h
}

// compare updates the fields that a write has changed. It returns the new conflicts, and reports whether the write
// repeats a conflict.
func (h *history) compare(w Write, progress bool, now time.Time) (found []Conflict, repeated bool) {
	object := objectID(w.Object)
	foreign := h.writtenByOthers(object, w.Before)
	for i, f := range w.Fields {
		current := h.field(fieldID(object, f.Path))
		if current == nil {
			continue
		}
		gap, value := conflictGap, f.After
		if f.Refused {
			gap, value = refusedGap, f.Requested
		}
		same := current.value == value && current.refused == f.Refused && !current.at.IsZero() && now.Sub(current.at) <= gap
		if !same {
			renewed := 1
			if f.Before == current.value && value != current.previous && value != current.value {
				renewed += current.renewed
			}
			*current = field{
				id: current.id, value: value, previous: current.value, renewed: renewed, refused: f.Refused, since: now,
			}
		}
		current.at = now
		repeats := f.Refused || foreign && f.Before != f.After && w.Before != w.After
		if !same || !repeats || progress {
			continue
		}
		if current.times++; current.times >= suspectAt {
			h.suspect(now)
		}
		if current.times < ConflictAt {
			continue
		}
		repeated = true
		if !current.conflict {
			current.conflict = true
			found = append(found, Conflict{
				Field: i, Refused: f.Refused, Times: current.times, Within: now.Sub(current.since),
			})
		}
	}
	return found, repeated
}

// writtenByOthers reports whether another client has written the object since the last write of the controller. It
// returns false if the cache has not observed that write, or if it is unknown.
func (h *history) writtenByOthers(object uint64, current string) bool {
	for _, v := range h.versions {
		if v.object != object {
			continue
		}
		order, err := resourceversion.CompareResourceVersion(current, v.version)
		return err == nil && order > 0
	}
	return false
}

// field returns the entry of a field. If the history is full, a new field replaces the oldest field without a
// repetition. It returns nil if there is none.
func (h *history) field(id uint64) *field {
	oldest := -1
	for i, f := range h.fields {
		if f.id == id {
			return &h.fields[i]
		}
		if f.times == 0 && (oldest < 0 || f.at.Before(h.fields[oldest].at)) {
			oldest = i
		}
	}
	if len(h.fields) < maxFields {
		h.fields = append(h.fields, field{})
		oldest = len(h.fields) - 1
	}
	if oldest < 0 {
		return nil
	}
	h.fields[oldest] = field{id: id}
	return &h.fields[oldest]
}

// record stores the versions of the objects that a reconcile has written.
func (h *history) record(this Reconcile, now time.Time) {
	h.last = now
	h.generation = max(h.generation, this.Generation)
written:
	for object, state := range this.Journal.Written {
		if object == this.Resource {
			h.generation = max(h.generation, state.Generation)
		}
		id := objectID(object)
		for i := range h.versions {
			if h.versions[i].object == id {
				h.versions[i].version = state.Version
				continue written
			}
		}
		if len(h.versions) >= maxVersions {
			h.versions = h.versions[1:]
		}
		h.versions = append(h.versions, version{id, state.Version})
	}
}

// slowDown delays the next requests after a reconcile that repeats a conflict.
func (h *history) slowDown(this Reconcile, now time.Time) {
	h.suspect(now)
	if now.Sub(h.conflicted) > idleTimeout {
		h.delay = 0
	}
	h.conflicted = now
	h.delay = max(firstDelay, min(2*h.delay, lastDelay))
	h.until = now.Add(h.delay)
	written := map[guard.Object]bool{}
	for object := range this.Journal.Written {
		written[object] = true
	}
	h.look = Look{
		Generation: h.generation, Existed: this.Exists, Versions: this.Journal.Reads(),
		Ours: func(o guard.Object) bool { return written[o] },
	}
	for _, w := range this.Changes {
		h.look.AnyGeneration = h.look.AnyGeneration || w.Object == this.Resource
	}
}
