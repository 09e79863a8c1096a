// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

var (
	eventObject = &corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", map[string]string{"color": "blue"})}
	byName      = Reference{Kind: "ConfigMap", Namespace: "ns", Name: "a"}
	bySelector  = Reference{
		Kind:      "ConfigMap",
		Namespace: "ns",
		Selector:  labels.SelectorFromSet(labels.Set{"color": "blue"}),
	}
)

func TestLease(t *testing.T) {
	for name, ref := range map[string]Reference{"Name": byName, "Selector": bySelector} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTracker(clientgoscheme.Scheme, time.Hour)
				check := func(when string, want ...string) {
					t.Helper()
					if diff := cmp.Diff(observerNames(want...), mustGetObservers(t, tr, eventObject)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", when, diff)
					}
				}

				mustTrack(t, tr, ref, observerNamed("a"))
				time.Sleep(30 * time.Minute)
				mustTrack(t, tr, ref, observerNamed("b"))
				time.Sleep(30*time.Minute - time.Nanosecond)
				check("just before the first lease ends", "a", "b")

				time.Sleep(time.Nanosecond)
				check("the first lease has ended", "b")

				mustTrack(t, tr, ref, observerNamed("a"))
				check("tracked again", "a", "b")

				time.Sleep(29 * time.Minute)
				mustTrack(t, tr, ref, observerNamed("b"))
				time.Sleep(30 * time.Minute)
				check("the second was renewed, the first has not expired", "a", "b")

				time.Sleep(time.Minute)
				check("only the renewed one is left", "b")

				time.Sleep(29 * time.Minute)
				check("all have ended")
			})
		})
	}
}

func TestUnusualLeases(t *testing.T) {
	tests := map[string]struct {
		reason string
		lease  time.Duration
		pass   time.Duration
		want   []types.NamespacedName
		// kept is the number of tracks in memory before the first lookup.
		kept int
	}{
		"Zero":         {reason: "expires immediately", lease: 0, pass: 0, want: observerNames()},
		"Negative":     {reason: "expires before it starts", lease: -time.Hour, pass: 0, want: observerNames()},
		"VeryNegative": {reason: "the end of the lease overflows", lease: math.MinInt64, pass: 0, want: observerNames()},
		"Nanosecond":   {reason: "expires before the event", lease: 1, pass: 1, want: observerNames(), kept: 2},
		"NanosecondOnTime": {
			reason: "matches an event at the same instant",
			lease:  1,
			pass:   0,
			want:   observerNames("a"),
			kept:   2,
		},
		"Forever": {
			reason: "the longest possible lease",
			lease:  math.MaxInt64,
			pass:   50 * 365 * 24 * time.Hour,
			want:   observerNames("a"),
			kept:   2,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTracker(clientgoscheme.Scheme, tt.lease)
				time.Sleep(time.Minute)
				mustTrack(t, tr, byName, observerNamed("a"))
				mustTrack(t, tr, bySelector, observerNamed("a"))
				if got := len(tr.tracks.entries); got != tt.kept {
					t.Errorf("%s: %d tracks are kept, want %d", tt.reason, got, tt.kept)
				}
				time.Sleep(tt.pass)
				if diff := cmp.Diff(tt.want, mustGetObservers(t, tr, eventObject)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
				}
			})
		})
	}
}

// A reference is validated even if the lease expires immediately.
func TestZeroLeaseValidates(t *testing.T) {
	tr := New(clientgoscheme.Scheme, 0)
	if err := tr.TrackReference(Reference{Kind: "ConfigMap"}, observerNamed("a")); err == nil {
		t.Error("no error for an empty reference")
	}
}

func TestNewUsesTheWallClock(t *testing.T) {
	tr := New(clientgoscheme.Scheme, time.Nanosecond)
	mustTrack(t, tr, byName, observerNamed("a"))
	if got := mustGetObservers(t, tr, eventObject); len(got) != 0 {
		t.Errorf("found %v after a lease of 1ns, want none", got)
	}
}

// Renewing must neither grow the tracker nor allocate: it happens on every reconcile.
func TestRenewing(t *testing.T) {
	selects := func(s string) Reference {
		selector, err := labels.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return Reference{Kind: "ConfigMap", Namespace: "ns", Selector: selector}
	}
	tests := map[string]Reference{
		"Name":         byName,
		"Label":        bySelector,
		"SeveralTerms": selects("app=site, color in (blue,red), !size, shape, version>2, env!=test"),
		"Everything":   {Kind: "ConfigMap", Selector: labels.Everything()},
	}
	for name, ref := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTracker(clientgoscheme.Scheme, time.Hour)
			a, b := observerNamed("a"), observerNamed("b")
			mustTrack(t, tr, ref, b)
			allocations := testing.AllocsPerRun(100, func() { mustTrack(t, tr, ref, a) })
			if allocations != 0 {
				t.Errorf("got %v allocations per renewal, want 0", allocations)
			}
			if got := len(tr.tracks.entries); got != 2 {
				t.Errorf("%d tracks are kept, want 2", got)
			}
			checkConsistent(t, tr)
		})
	}
}
