// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// The tracks of an observer that is held do not expire because it is idle.
func TestHold(t *testing.T) {
	type step struct {
		name string
		do   func(tr *tracker, a, other Reference)
		want []string // observers of the object that is tracked first
	}
	a, b := observerNamed("a"), observerNamed("b")
	track := func(t *testing.T, tr *tracker, ref Reference) { mustTrack(t, tr, ref, a) }
	for name, ref := range map[string]Reference{"Name": byName, "Selector": bySelector} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTracker(clientgoscheme.Scheme, time.Hour)
				idle := func(*tracker, Reference, Reference) { time.Sleep(1000 * time.Hour) }
				for _, s := range []step{
					{"tracked", func(tr *tracker, ref, _ Reference) {
						track(t, tr, ref)
						mustTrack(t, tr, ref, b)
					}, []string{"a", "b"}},
					{"reconciled", func(tr *tracker, _, _ Reference) { tr.Hold(a, time.Now()) }, []string{"a", "b"}},
					{"idle: only b is not held", idle, []string{"a"}},
					{"reconciled in part", func(tr *tracker, _, other Reference) {
						track(t, tr, other)
						tr.Hold(a, time.Time{})
					}, []string{"a"}},
					{"reconciled and renewed", func(tr *tracker, ref, other Reference) {
						track(t, tr, ref)
						track(t, tr, other)
						tr.Hold(a, time.Now())
					}, []string{"a"}},
					{"not renewed, within the lease", func(tr *tracker, _, other Reference) {
						time.Sleep(59 * time.Minute)
						track(t, tr, other)
						tr.Hold(a, time.Now())
					}, []string{"a"}},
					{"not renewed, after the lease", func(tr *tracker, _, other Reference) {
						time.Sleep(time.Minute)
						track(t, tr, other)
						tr.Hold(a, time.Now())
					}, nil},
					{"renewed by a reconcile that takes longer than the lease", func(tr *tracker, ref, _ Reference) {
						start := time.Now()
						track(t, tr, ref)
						time.Sleep(2 * time.Hour)
						tr.Hold(a, time.Time{})
						tr.Hold(a, start)
					}, []string{"a"}},
					{"tracked again while held", func(tr *tracker, ref, _ Reference) { track(t, tr, ref) }, []string{"a"}},
					{"idle again", idle, []string{"a"}},
					{"forgotten", func(tr *tracker, _, _ Reference) { tr.Forget(a) }, nil},
					{"tracked, but not reconciled", func(tr *tracker, ref, _ Reference) { track(t, tr, ref) }, []string{"a"}},
					{"idle while not held", idle, nil},
					{"expired tracks are not revived", func(tr *tracker, _, _ Reference) { tr.Hold(a, time.Time{}) }, nil},
					{"nil", func(tr *tracker, _, _ Reference) { tr.Hold(nil, time.Now()) }, nil},
				} {
					s.do(tr, ref, elsewhere)
					if diff := cmp.Diff(observerNames(s.want...), mustGetObservers(t, tr, eventObject)); diff != "" {
						t.Fatalf("%s (-want +got):\n%s", s.name, diff)
					}
					checkConsistent(t, tr)
				}
				if diff := cmp.Diff(size{}, sizeOf(tr)); diff != "" {
					t.Errorf("in memory at the end (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// An observer that tracks other objects in each reconcile must not accumulate tracks.
func TestHold_MemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perLease = 100
		tr := newTracker(clientgoscheme.Scheme, time.Hour)
		for i := range 10 * perLease {
			time.Sleep(time.Hour / perLease)
			mustTrack(t, tr, elsewhere, observerNamed("a"))
			mustTrack(t, tr, Reference{Kind: "ConfigMap", Namespace: "ns", Name: fmt.Sprint(i)}, observerNamed("a"))
			tr.Hold(observerNamed("a"), time.Now())
			if got := len(tr.tracks.entries); got > perLease+1 {
				t.Fatalf("%d tracks after %d reconciles, want at most %d", got, i+1, perLease+1)
			}
		}
		checkConsistent(t, tr)
	})
}

// Most reconciles change nothing.
func TestHold_AllocatesNothing(t *testing.T) {
	tr, a := newTracker(clientgoscheme.Scheme, time.Hour), observerNamed("a")
	mustTrack(t, tr, byName, a)
	if allocations := testing.AllocsPerRun(100, func() { tr.Hold(a, time.Now()) }); allocations != 0 {
		t.Errorf("got %v allocations, want 0", allocations)
	}
}
