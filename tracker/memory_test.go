// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"trueup.dev/internal/testkit/heap"
)

// size counts what a tracker holds.
type size struct{ Tracks, Observers, ObserverKinds, Exact, Selected, Kinds, Labels int }

func sizeOf(tr *tracker) size {
	s := size{Tracks: len(tr.tracks.entries), ObserverKinds: len(tr.observers.entries), Kinds: len(tr.kinds.entries)}
	for _, of := range tr.observers.entries {
		s.Observers += len(of.entries)
	}
	for _, k := range tr.kinds.entries {
		s.Exact += len(k.exact.entries)
		s.Selected += len(k.selected.entries)
		for _, x := range []index{k.inNamespace, k.anywhere} {
			s.Labels += len(x.equal.entries) + len(x.present.entries)
		}
	}
	return s
}

var elsewhere = Reference{Kind: "Secret", Namespace: "ns", Name: "elsewhere"}

// trackThree makes an observer watch an object, a label and the presence of another label. No other observer watches
// them.
func trackThree(t testing.TB, tr Tracker, i int) {
	t.Helper()
	name := fmt.Sprintf("object-%d", i)
	watcher := observerNamed(name)
	mustTrack(t, tr, Reference{Kind: "ConfigMap", Namespace: "ns", Name: name}, watcher)
	mustTrack(
		t, tr, Reference{Kind: "ConfigMap", Namespace: name, Selector: labels.SelectorFromSet(labels.Set{"name": name})},
		watcher,
	)
	selector, err := labels.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	mustTrack(t, tr, Reference{Kind: "ConfigMap", Selector: selector}, watcher)
}

// Expired tracks must not stay in memory, even if no event looks them up.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perLease = 320
		tr := newTracker(clientgoscheme.Scheme, time.Hour)
		for i := range 10 * perLease {
			time.Sleep(time.Hour / perLease)
			trackThree(t, tr, i)
			// memory is released at the end of the tick in which a track expires
			const most = perLease + perLease/ticksPerLease + 1
			if got := sizeOf(tr); got.Tracks > 3*most || got.Observers > most || got.Labels > 2*most {
				t.Fatalf("after %d observers got %+v in memory, but at most %d have not expired", i+1, got, perLease)
			}
		}
		checkConsistent(t, tr)
	})
}

// Every call releases expired tracks, a bounded number each time.
func TestExpiry(t *testing.T) {
	const observers = 1000
	tests := map[string]func(t *testing.T, tr *tracker){
		"Tracking": func(t *testing.T, tr *tracker) {
			mustTrack(t, tr, byName, observerNamed(fmt.Sprint(time.Now().UnixNano())))
		},
		"Renewing": func(t *testing.T, tr *tracker) { mustTrack(t, tr, elsewhere, observerNamed("stays")) },
		"LookingUp": func(t *testing.T, tr *tracker) {
			if got := mustGetObservers(t, tr, eventObject); len(got) != 0 {
				t.Errorf("found %v", got)
			}
		},
		"Forgetting": func(_ *testing.T, tr *tracker) { tr.Forget(observerNamed("unknown")) },
	}
	for name, call := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTracker(clientgoscheme.Scheme, time.Hour)
				mustTrack(t, tr, elsewhere, observerNamed("stays"))
				for i := range observers {
					trackThree(t, tr, i)
				}
				time.Sleep(50 * time.Minute)
				mustTrack(t, tr, elsewhere, observerNamed("stays"))
				time.Sleep(50 * time.Minute)

				const calls = 3*observers/sweepSize + 2
				for range calls {
					before := len(tr.tracks.entries)
					call(t, tr)
					if after := len(tr.tracks.entries); before-after > sweepSize {
						t.Fatalf("one call removed %d tracks, want at most %d", before-after, sweepSize)
					}
				}
				lapsed := 0
				for _, track := range tr.tracks.entries {
					if track.expired(tr.now()) {
						lapsed++
					}
				}
				if lapsed != 0 {
					t.Errorf("got %d expired tracks in memory after %d calls", lapsed, calls)
				}
				if tr.tracks.entries[onlyTrack(tr, "stays")] == nil {
					t.Error("the renewed track was removed")
				}
				checkConsistent(t, tr)
			})
		})
	}
}

// onlyTrack returns the key of the one track of an observer.
func onlyTrack(tr *tracker, name string) trackKey {
	if o := tr.observer(observerKeyOf(observerNamed(name), tr.scheme)); o != nil && len(o.tracks) == 1 {
		return o.tracks[0].trackKey
	}
	return trackKey{}
}

func TestForgettingFreesEntries(t *testing.T) {
	const observers = 1000
	tr := newTracker(clientgoscheme.Scheme, time.Hour)
	mustTrack(t, tr, elsewhere, observerNamed("stays"))
	for i := range observers {
		trackThree(t, tr, i)
	}
	want := size{
		Tracks:        3*observers + 1,
		Observers:     observers + 1,
		ObserverKinds: 1,
		Exact:         observers + 1,
		Selected:      2 * observers,
		Kinds:         2,
		Labels:        2 * observers,
	}
	if diff := cmp.Diff(want, sizeOf(tr)); diff != "" {
		t.Fatalf("tracked (-want +got):\n%s", diff)
	}
	for i := range observers {
		tr.Forget(observerNamed(fmt.Sprintf("object-%d", i)))
	}
	if diff := cmp.Diff(size{Tracks: 1, Observers: 1, ObserverKinds: 1, Exact: 1, Kinds: 1}, sizeOf(tr)); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
	checkConsistent(t, tr)
}

// An object that had many observers must not keep the memory for them.
func TestRoomIsGivenBack(t *testing.T) {
	const observers = 1000
	tr := newTracker(clientgoscheme.Scheme, time.Hour)
	for i := range observers {
		mustTrack(t, tr, byName, observerNamed(fmt.Sprint(i)))
	}
	for i := range observers - 1 {
		tr.Forget(observerNamed(fmt.Sprint(i)))
	}
	on := tr.kinds.entries[byName.groupKind()].target(byName, nil)
	if room := cap(on.tracks); room > roomy {
		t.Errorf("got a capacity of %d observers after all but one were forgotten", room)
	}
	checkConsistent(t, tr)
}

// Observers that come and go while one stays must not accumulate memory, neither in maps, which keep their capacity,
// nor in cross-references.
func TestHeapIsGivenBack(t *testing.T) {
	const observers = 5000
	tr := newTracker(clientgoscheme.Scheme, time.Hour)
	mustTrack(t, tr, elsewhere, observerNamed("stays"))
	mustTrack(t, tr, byName, observerNamed("stays"))

	before := heap.InUse()
	for i := range observers {
		trackThree(t, tr, i)
		mustTrack(t, tr, byName, observerNamed(fmt.Sprintf("object-%d", i)))
	}
	full := heap.InUse() - before
	for i := range observers {
		tr.Forget(observerNamed(fmt.Sprintf("object-%d", i)))
	}
	left := heap.InUse() - before
	if left > full/20 {
		t.Errorf("got %d of %d bytes in use after all observers were forgotten", left, full)
	}
	runtime.KeepAlive(tr)
}
