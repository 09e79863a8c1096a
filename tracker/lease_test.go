// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// clock is a time that passes when told to.
type clock struct{ time time.Time }

func newClock() *clock {
	return &clock{time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (c *clock) now() time.Time          { return c.time }
func (c *clock) advance(d time.Duration) { c.time = c.time.Add(d) }

var (
	eventObject  = &corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", map[string]string{"color": "blue"})}
	byName       = Reference{Kind: "ConfigMap", Namespace: "ns", Name: "a"}
	bySelector   = Reference{Kind: "ConfigMap", Namespace: "ns", Selector: labels.SelectorFromSet(labels.Set{"color": "blue"})}
	elsewhereRef = Reference{Kind: "Secret", Namespace: "ns", Name: "elsewhere"}
)

func TestLease(t *testing.T) {
	for name, ref := range map[string]Reference{"Name": byName, "Selector": bySelector} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			tr := newTracker(clientgoscheme.Scheme, time.Hour, clock.now)
			check := func(when string, want ...string) {
				t.Helper()
				if diff := cmp.Diff(observerNames(want...), mustGetObservers(t, tr, eventObject)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", when, diff)
				}
			}

			mustTrack(t, tr, ref, observer("a"))
			clock.advance(30 * time.Minute)
			mustTrack(t, tr, ref, observer("b"))
			clock.advance(30*time.Minute - 1)
			check("just before the first lease ends", "a", "b")

			clock.advance(1)
			check("the first lease has ended", "b")

			mustTrack(t, tr, ref, observer("a"))
			check("tracked anew", "a", "b")

			clock.advance(29 * time.Minute)
			mustTrack(t, tr, ref, observer("b"))
			clock.advance(30 * time.Minute)
			check("the second was renewed, the first is still good", "a", "b")

			clock.advance(time.Minute)
			check("only the renewed one is left", "b")

			clock.advance(29 * time.Minute)
			check("all have ended")
		})
	}
}

func TestShortLeases(t *testing.T) {
	tests := map[string]struct {
		reason string
		lease  time.Duration
		pass   time.Duration
		want   []types.NamespacedName
	}{
		"Zero":             {reason: "lapses in the very instant", lease: 0, pass: 0, want: observerNames()},
		"Negative":         {reason: "has lapsed before it began", lease: -time.Hour, pass: 0, want: observerNames()},
		"Nanosecond":       {reason: "no event is that fast", lease: 1, pass: 1, want: observerNames()},
		"NanosecondOnTime": {reason: "but if one were, it would match", lease: 1, pass: 0, want: observerNames("a")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			tr := newTracker(clientgoscheme.Scheme, tt.lease, clock.now)
			mustTrack(t, tr, byName, observer("a"))
			mustTrack(t, tr, bySelector, observer("a"))
			clock.advance(tt.pass)
			if diff := cmp.Diff(tt.want, mustGetObservers(t, tr, eventObject)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestNewUsesTheWallClock(t *testing.T) {
	tr := New(clientgoscheme.Scheme, time.Nanosecond)
	mustTrack(t, tr, byName, observer("a"))
	if got := mustGetObservers(t, tr, eventObject); len(got) != 0 {
		t.Errorf("found %v after a lease of 1ns, want nothing", got)
	}
}

// What lapsed must not stay in memory, even if no event ever asks for it.
func TestMemoryIsBounded(t *testing.T) {
	const perLease = 100
	clock := newClock()
	tr := newTracker(clientgoscheme.Scheme, time.Hour, clock.now)
	for i := range 20 * perLease {
		clock.advance(time.Hour / perLease)
		name := fmt.Sprintf("object-%d", i)
		mustTrack(t, tr, Reference{Kind: "ConfigMap", Namespace: name, Name: name}, observer(name))
		mustTrack(t, tr, Reference{
			Kind: "ConfigMap", Namespace: name,
			Selector: labels.SelectorFromSet(labels.Set{"name": name}),
		}, observer(name))

		if got := len(tr.tracks); got > 2*perLease {
			t.Fatalf("after %d registrations %d tracks are kept, at most %d are good", 2*(i+1), got, 2*perLease)
		}
		if exact, selectors := len(tr.exact), len(tr.selectors); exact > perLease || selectors > perLease {
			t.Fatalf("%d objects and %d selector buckets are kept, at most %d are watched", exact, selectors, perLease)
		}
	}

	clock.advance(time.Hour)
	mustTrack(t, tr, elsewhereRef, observer("last"))
	got := [3]int{len(tr.tracks), len(tr.exact), len(tr.selectors)}
	if diff := cmp.Diff([3]int{1, 1, 0}, got); diff != "" {
		t.Errorf("tracks, objects, selector buckets after all but one lapsed (-want +got):\n%s", diff)
	}
}

// Renewing must not let anything grow, it happens on every reconcile.
func TestRenewingKeepsOneTrack(t *testing.T) {
	tr := newTracker(clientgoscheme.Scheme, time.Hour, newClock().now)
	for range 100 {
		mustTrack(t, tr, byName, observer("a"))
		mustTrack(t, tr, bySelector, observer("a"))
	}
	if got := len(tr.tracks); got != 2 {
		t.Errorf("%d tracks are kept, want 2", got)
	}
	if got := len(tr.exact[exactKey{GroupKind: byName.groupKind(), NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}}].tracks); got != 1 {
		t.Errorf("%d tracks are on the object, want 1", got)
	}
}
