// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// checkConsistent checks that the data structures of the tracker agree with each other and hold no unused entries. The
// tracker must not be in use.
func checkConsistent(t testing.TB, tr *tracker) {
	t.Helper()
	want := 0
	for key, track := range tr.tracks.entries {
		held := key.observer.held.Load()
		if held == (track.next != nil) {
			t.Errorf("the track of %s is in the timetable: %t, its observer is held: %t", track.name, track.next != nil, held)
		}
		if !held {
			want++
		}
	}
	if got := listed(tr); got != want {
		t.Errorf("%d tracks are in the timetable, want %d", got, want)
	}
	for key, track := range tr.tracks.entries {
		if track.trackKey != key || key.observer.of.entries[track.name] != key.observer {
			t.Errorf("the track of %s belongs to another observer", track.name)
		}
		if key.target.tracks[track.place[ofTarget]] != track || key.observer.tracks[track.place[ofObserver]] != track {
			t.Errorf("the track of %s is not at its index", track.name)
		}
		if on := key.target; on.kind.table(on).entries[on.name] != on || tr.kinds.entries[on.kind.GroupKind] != on.kind {
			t.Errorf("the target of %s is not part of the tracker", track.name)
		}
	}

	var ofTargets, ofObservers int
	for gk, k := range tr.kinds.entries {
		if k.empty() {
			t.Errorf("kind %s has no targets", gk)
		}
		var inIndex int
		for _, targets := range []map[types.NamespacedName]*target{k.exact.entries, k.selected.entries} {
			for name, on := range targets {
				if len(on.tracks) == 0 {
					t.Errorf("%s %s has no observers", gk, name)
				}
				for _, track := range on.tracks {
					if !on.mixed && track.observer.of != on.tracks[0].observer.of {
						t.Errorf("%s %s is not marked as having observers of several kinds", gk, name)
					}
				}
				ofTargets += len(on.tracks)
				if first := &on.first; first.target != nil && tr.tracks.entries[first.trackKey] != first {
					t.Errorf("%s %s keeps a removed track", gk, name)
				}
				if on.selection != nil {
					inIndex += len(on.selection.postings)
				}
			}
		}
		for _, p := range []*postings{&k.inNamespace.equal, &k.inNamespace.present, &k.anywhere.equal, &k.anywhere.present} {
			inIndex -= checkPostings(t, p)
		}
		if inIndex != 0 {
			t.Errorf("the index of %s lacks %d postings", gk, inIndex)
		}
	}
	for kind, of := range tr.observers.entries {
		if of.kind != kind || len(of.entries) == 0 {
			t.Errorf("%d observers of kind %v are stored under kind %v", len(of.entries), of.kind, kind)
		}
		for name, o := range of.entries {
			if o.of != of || len(o.tracks) == 0 {
				t.Errorf("%s has %d targets and is of kind %v", name, len(o.tracks), o.of.kind)
			}
			ofObservers += len(o.tracks)
		}
	}
	if want := len(tr.tracks.entries); ofTargets != want || ofObservers != want {
		t.Errorf("targets have %d tracks and observers %d, want %d", ofTargets, ofObservers, want)
	}
}

// table returns the table that holds the target.
func (k *kind) table(on *target) *table[types.NamespacedName, *target] {
	if on.selection == nil {
		return &k.exact
	}
	return &k.selected
}

// listed counts the tracks in the timetable.
func listed(tr *tracker) int {
	count := 0
	lists := []*trackList{&tr.timetable.overdue}
	for i := range tr.timetable.upcoming {
		lists = append(lists, &tr.timetable.upcoming[i])
	}
	for _, list := range lists {
		for track := list.ring.next; track != &list.ring; track = track.next {
			count++
		}
	}
	return count
}

// checkPostings counts the postings and checks that each is in the list of its label.
func checkPostings(t testing.TB, p *postings) int {
	t.Helper()
	count := 0
	for at, list := range p.entries {
		length := 0
		var previous *posting
		for post := list.first; post != nil; previous, post = post, post.next {
			if post.in != p || post.at != at || post.previous != previous {
				t.Errorf("a posting at %v is in the wrong list", at)
			}
			length++
		}
		if length != list.length || length == 0 {
			t.Errorf("got %d postings at %v, want the recorded length %d", length, at, list.length)
		}
		count += length
	}
	return count
}
