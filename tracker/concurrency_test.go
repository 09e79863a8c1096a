// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Several goroutines track, forget and look up concurrently. One observer is never forgotten: each lookup must find it
// exactly once.
func TestConcurrentUse(t *testing.T) {
	tests := map[string]struct {
		reason string
		lease  time.Duration
		// found reports whether leases outlast the test.
		found bool
	}{
		"LongLease":  {"only forgotten observers are removed", time.Hour, true},
		"ShortLease": {"leases expire throughout the test", 50 * time.Microsecond, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			const workers, rounds = 8, 300
			tr := newTracker(clientgoscheme.Scheme, tt.lease)
			references := []Reference{
				byName,
				bySelector,
				{Kind: "ConfigMap", Selector: mustParse(t, "color in (red,blue),!size")},
			}
			for _, ref := range references {
				mustTrack(t, tr, ref, observerNamed("stays"))
			}

			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for i := range rounds {
						name := fmt.Sprintf("o%d", (w+i)%4)
						for _, ref := range references {
							if err := tr.TrackReference(ref, observerNamed(name)); err != nil {
								t.Error(err)
							}
						}
						// no other observer watches these
						alone := Reference{Kind: "ConfigMap", Namespace: "ns", Name: fmt.Sprintf("w%d-%d", w, i%10)}
						if err := tr.TrackReference(alone, observerNamed(name)); err != nil {
							t.Error(err)
						}
						if i%5 == 0 {
							tr.Forget(observerNamed(name))
						}
					}
				})
				wg.Go(func() {
					for range rounds {
						got, err := tr.GetObservers(eventObject)
						if err != nil {
							t.Error(err)
						}
						seen := map[types.NamespacedName]int{}
						for _, name := range got {
							if seen[name]++; seen[name] > 1 {
								t.Errorf("%s is returned twice", name)
							}
						}
						if tt.found && seen[observerNames("stays")[0]] != 1 {
							t.Errorf("found %v, without the observer that is never forgotten", got)
						}
					}
				})
			}
			wg.Wait()
			checkConsistent(t, tr)
		})
	}
}

// Two goroutines may both find that the track does not exist yet.
func TestAddingTwice(t *testing.T) {
	tr := newTracker(clientgoscheme.Scheme, time.Hour)
	for range 2 {
		tr.add(byName, nil, observerKeyOf(observerNamed("a"), tr.scheme), tr.now())
	}
	if diff := cmp.Diff(observerNames("a"), mustGetObservers(t, tr, eventObject)); diff != "" {
		t.Errorf("observers (-want +got):\n%s", diff)
	}
	checkConsistent(t, tr)
}

// Each of many observers is found once, regardless of how many of its references match.
func TestSharedObject(t *testing.T) {
	const observers = 2_000
	tests := map[string][]Reference{
		"Name":         {byName},
		"Selector":     {bySelector},
		"SeveralWays":  {byName, bySelector, {Kind: "ConfigMap", Selector: labels.Everything()}},
		"NotByTheName": {bySelector, {Kind: "ConfigMap", Namespace: "ns", Selector: mustParse(t, "!size")}},
	}
	for name, references := range tests {
		t.Run(name, func(t *testing.T) {
			tr := New(clientgoscheme.Scheme, time.Hour)
			want := make(map[types.NamespacedName]int, observers)
			for i := range observers {
				name := fmt.Sprint(i)
				want[observerNames(name)[0]] = 1
				for _, ref := range references {
					mustTrack(t, tr, ref, observerNamed(name))
				}
			}
			found, err := tr.GetObservers(eventObject)
			if err != nil {
				t.Fatal(err)
			}
			got := make(map[types.NamespacedName]int, observers)
			for _, name := range found {
				got[name]++
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("number of times each observer is found (-want +got):\n%s", diff)
			}
		})
	}
}

// rendezvousSelector matches when the expected number of lookups evaluate it at the same time.
type rendezvousSelector struct {
	labels.Selector
	meet func()
}

func (s rendezvousSelector) Matches(labels.Labels) bool {
	s.meet()
	return true
}

// A lookup evaluates selectors, which may take long. Other lookups must not wait for it.
func TestLookupsDoNotExcludeEachOther(t *testing.T) {
	const lookups = 2 * len(stripedLock{}) // more than fit in stripes of their own
	var arrived sync.WaitGroup
	arrived.Add(lookups)
	selector := rendezvousSelector{
		Selector: labels.Everything(),
		meet: func() {
			arrived.Done()
			arrived.Wait() // blocks forever if lookups exclude each other
		},
	}

	tr := New(clientgoscheme.Scheme, time.Hour)
	mustTrack(t, tr, Reference{Kind: "ConfigMap", Namespace: "ns", Selector: selector}, observerNamed("a"))

	results := make(chan []types.NamespacedName, lookups)
	for range lookups {
		go func() {
			got, err := tr.GetObservers(&corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", nil)})
			if err != nil {
				t.Error(err)
			}
			results <- got
		}()
	}
	deadline := time.After(30 * time.Second)
	for range lookups {
		select {
		case got := <-results:
			if diff := cmp.Diff(observerNames("a"), got); diff != "" {
				t.Errorf("observers (-want +got):\n%s", diff)
			}
		case <-deadline:
			t.Fatal("lookups wait for each other")
		}
	}
}
