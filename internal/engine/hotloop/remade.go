// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/ownership"
)

const (
	// remadeWithin is the time within which an object must be created or deleted [ConflictAt] times to be a conflict.
	remadeWithin = time.Minute
	// maxRemade limits the number of objects of a history.
	maxRemade = 64
)

// Remade is an object that is created and deleted in turns: by this controller, or by it and another client.
type Remade struct {
	// CreatedBy and DeletedBy name the steps of this controller. One is empty if another client does that.
	CreatedBy, DeletedBy string
	// Times is the number of creations or deletions by the controller, and Within the time between the first and the last.
	Times  int
	Within time.Duration

	change guard.Change
}

// remade is an object that the controller has created or deleted.
type remade struct {
	id               uint64
	created, deleted turns
	last             time.Time
	// loop reports whether it is a hot loop.
	loop bool
}

// turns are the last creations or deletions of an object by the controller.
type turns struct {
	step string
	uid  types.UID
	at   []time.Time
}

// add adds a creation or deletion. It returns false if it is about the same object as the last one.
func (t *turns) add(change guard.Change, now time.Time) bool {
	if change.UID != "" && change.UID == t.uid {
		return false
	}
	if len(t.at) >= ConflictAt {
		t.at = t.at[1:]
	}
	t.step, t.uid, t.at = change.Step, change.UID, append(t.at, now)
	return true
}

// by names the step.
func (t *turns) by() string {
	switch {
	case len(t.at) == 0:
		return ""
	case t.step == "":
		return "this controller"
	}
	return "step " + t.step
}

// remake updates the objects that a reconcile has created or deleted. It returns those that are now created and deleted
// in turns, and reports whether it has created or deleted such an object again.
func (h *history) remake(this Reconcile, now time.Time) (again bool, found []Remade) {
	if this.Generation > h.generation {
		h.remade = nil // a new generation is progress
	}
	for _, change := range this.Journal.Changes() {
		deletes := change.Verb == "deletes" && change.UID != ""
		if !deletes && change.Verb != "creates" && (change.Verb != "applies" || change.Before != nil || change.UID == "") {
			continue
		}
		r := h.remadeObject(objectID(change.Object), now)
		mine := &r.created
		if deletes {
			mine = &r.deleted
		}
		if !mine.add(change, now) {
			continue
		}
		r.last = now
		if len(mine.at) >= suspectAt {
			h.suspect(now)
		}
		within := now.Sub(mine.at[0])
		if !r.loop && (len(mine.at) < ConflictAt || within > remadeWithin) {
			continue
		}
		again = true
		if !r.loop {
			r.loop = true
			found = append(found, Remade{
				CreatedBy: r.created.by(), DeletedBy: r.deleted.by(), Times: len(mine.at), Within: within, change: change,
			})
		}
	}
	return again, found
}

// remadeObject returns the entry of an object. It is new if the controller has not created or deleted it for a while.
func (h *history) remadeObject(id uint64, now time.Time) *remade {
	i := slices.IndexFunc(h.remade, func(r remade) bool { return r.id == id })
	switch {
	case i >= 0 && now.Sub(h.remade[i].last) > idleTimeout:
		h.remade[i] = remade{id: id}
	case i < 0:
		if len(h.remade) >= maxRemade {
			h.remade = slices.Delete(h.remade, 0, 1)
		}
		h.remade = append(h.remade, remade{id: id})
		i = len(h.remade) - 1
	}
	return &h.remade[i]
}

// Object describes the object.
func (r Remade) Object() string { return fmt.Sprintf("%s %s", r.change.Kind.Kind, r.change.Key) }

// Describe describes who creates and who deletes the object.
func (r Remade) Describe() string {
	creates, deletes, did := cmp.Or(r.CreatedBy, "another client"), cmp.Or(r.DeletedBy, "another client"), "created"
	if r.change.Verb == "deletes" {
		did = "deleted"
		if r.CreatedBy == "" && r.change.Before != nil {
			if creator := oldest(r.change.Before.GetManagedFields()); creator != nil {
				creates = ownership.NameOf(creator)
			}
		}
	}
	return fmt.Sprintf("%s was %s %d times in %s: %s creates it, %s deletes it",
		r.Object(), did, r.Times, r.Within.Round(time.Second), creates, deletes)
}

// oldest returns the entry with the first time, which is usually the entry of the client that created the object.
func oldest(all managers) (first *metav1.ManagedFieldsEntry) {
	for i := range all {
		if e := &all[i]; first == nil || e.Time.Before(first.Time) {
			first = e
		}
	}
	return first
}
