// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// checkConsistent checks that everything in the tracker is where others expect
// it, and that nothing is kept which is of no use. The tracker must not be in
// use.
func checkConsistent(t testing.TB, tr *tracker) {
	t.Helper()
	if got, want := listed(tr), len(tr.tracks.entries); got != want {
		t.Errorf("%d tracks are in the timetable, want %d", got, want)
	}
	for key, track := range tr.tracks.entries {
		if track.trackKey != key || key.observer.of.entries[track.name] != key.observer {
			t.Errorf("the track of %s is somebody else's", track.name)
		}
		if key.target.tracks[track.place[ofTarget]] != track || key.observer.tracks[track.place[ofObserver]] != track {
			t.Errorf("the track of %s is not at its place", track.name)
		}
		if on := key.target; on.kind.table(on).entries[on.name] != on || tr.kinds.entries[on.kind.GroupKind] != on.kind {
			t.Errorf("what %s watches is not part of the tracker", track.name)
		}
	}

	var ofTargets, ofObservers int
	for gk, k := range tr.kinds.entries {
		if k.empty() {
			t.Errorf("nothing is watched of kind %s", gk)
		}
		var inIndex int
		for _, targets := range []map[types.NamespacedName]*target{k.exact.entries, k.selected.entries} {
			for name, on := range targets {
				if len(on.tracks) == 0 {
					t.Errorf("nobody watches %s %s", gk, name)
				}
				for _, track := range on.tracks {
					if !on.mixed && track.observer.of != on.tracks[0].observer.of {
						t.Errorf("%s %s does not know of what kinds its observers are", gk, name)
					}
				}
				ofTargets += len(on.tracks)
				if first := &on.first; first.target != nil && tr.tracks.entries[first.trackKey] != first {
					t.Errorf("%s %s keeps a track that is gone", gk, name)
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
			t.Errorf("the index of %s has %d postings too few", gk, inIndex)
		}
	}
	for kind, of := range tr.observers.entries {
		if of.kind != kind || len(of.entries) == 0 {
			t.Errorf("%d observers of %v are kept as %v", len(of.entries), of.kind, kind)
		}
		for name, o := range of.entries {
			if o.of != of || len(o.tracks) == 0 {
				t.Errorf("%s watches %d targets and is one of %v", name, len(o.tracks), o.of.kind)
			}
			ofObservers += len(o.tracks)
		}
	}
	if want := len(tr.tracks.entries); ofTargets != want || ofObservers != want {
		t.Errorf("targets have %d tracks and observers %d, want %d", ofTargets, ofObservers, want)
	}
}

// table returns where a target of the kind belongs.
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

// checkPostings counts the postings, and checks that they know where they are.
func checkPostings(t testing.TB, p *postings) int {
	t.Helper()
	count := 0
	for at, list := range p.entries {
		length := 0
		var previous *posting
		for post := list.first; post != nil; previous, post = post, post.next {
			if post.in != p || post.at != at || post.previous != previous {
				t.Errorf("a posting at %v is not where it belongs", at)
			}
			length++
		}
		if length != list.length || length == 0 {
			t.Errorf("%d postings are at %v, counted as %d", length, at, list.length)
		}
		count += length
	}
	return count
}
