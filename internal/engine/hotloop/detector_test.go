// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/guard"
)

func request(i int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: fmt.Sprint(i)}}
}

// atOnce returns a reconcile that requests an immediate requeue.
func atOnce(generation int64) Reconcile {
	return Reconcile{Started: time.Now(), Generation: generation, RequeueAfter: time.Nanosecond, Journal: &guard.Journal{}}
}

func unchanged(Look) bool { return false }

// run makes n reconciles of a resource and returns the detected loops.
func run(d *Detector, n int, generation func(i int) int64) (found []*Loop) {
	for i := range n {
		if loop := d.Leave(request(0), atOnce(generation(i))); loop != nil {
			found = append(found, loop)
		}
		time.Sleep(time.Millisecond)
	}
	return found
}

func same(int) int64 { return 1 }

func TestDetector_DetectsALoopOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Detector{}
		if found := run(d, Limit, same); len(found) != 0 {
			t.Fatalf("detected %v within the limit", found[0])
		}
		found := run(d, Limit, same)
		if len(found) != 1 || found[0].Reconciles != Limit+1 || found[0].Within != Limit*time.Millisecond {
			t.Fatalf("detected %+v, want one loop of %d reconciles", found, Limit+1)
		}
		if entry := d.Enter(request(0), unchanged); entry.Wait <= 0 || !entry.Inspect {
			t.Errorf("entry of the next request: got %+v, want a wait", entry)
		}
		if entry := d.Enter(request(0), func(Look) bool { return true }); entry.Wait != 0 {
			t.Errorf("entry after a change by another client: got %+v, want no wait", entry)
		}
		if entry := d.Enter(request(1), unchanged); entry != (Entry{}) {
			t.Errorf("entry of another resource: got %+v, want none", entry)
		}
		d.Forget(request(0))
		if !d.Idle() {
			t.Error("the detector is not idle after Forget of its only resource")
		}
	})
}

func TestDetector_DetectsNoLoop(t *testing.T) {
	for name, loop := range map[string]func(d *Detector) []*Loop{
		"new generations": func(d *Detector) []*Loop {
			return run(d, 3*Limit, func(i int) int64 { return int64(i) })
		},
		"a no-op reconcile in between": func(d *Detector) (found []*Loop) {
			for range 6 {
				found = append(found, run(d, Limit/2, same)...)
				d.Leave(request(0), Reconcile{Started: time.Now(), Journal: &guard.Journal{}})
			}
			return found
		},
		"slower than the window": func(d *Detector) (found []*Loop) {
			for range 3 * Limit {
				found = append(found, run(d, 1, same)...)
				time.Sleep(2 * Window / Limit)
			}
			return found
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if found := loop(&Detector{}); len(found) != 0 {
					t.Errorf("detected %+v, want none", found[0])
				}
			})
		})
	}
}

// The delay doubles up to one minute, and no request is dropped.
func TestDetector_DelaysRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Detector{}
		run(d, Limit+1, same)
		waits := []time.Duration{}
		for range 9 {
			wait := d.Enter(request(0), unchanged).Wait
			waits = append(waits, wait.Round(time.Second))
			time.Sleep(wait)
			if again := d.Enter(request(0), unchanged).Wait; again > 0 {
				t.Fatalf("a request that has waited %s is delayed for another %s", wait, again)
			}
			d.Leave(request(0), atOnce(1))
		}
		want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}
		for i := range waits {
			if waits[i] != want[i]*time.Second {
				t.Fatalf("waits: got %v, want %v s", waits, want)
			}
		}
	})
}

// The number of streaks is limited, and streaks of resources that are not reconciled anymore end.
func TestDetector_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Detector{}
		for i := range maxStreaks + 10 {
			d.Leave(request(i), atOnce(1))
		}
		if d.streaks.Len() != maxStreaks {
			t.Errorf("%d streaks, want %d", d.streaks.Len(), maxStreaks)
		}
		time.Sleep(idleTimeout + sweepInterval)
		d.Leave(request(0), atOnce(2))
		if d.streaks.Len() != 1 {
			t.Errorf("%d streaks after the idle timeout, want 1", d.streaks.Len())
		}
	})
}

func TestDetector_AllocatesNothingForAnIdleResource(t *testing.T) {
	d, journal, req := &Detector{}, &guard.Journal{}, request(0)
	allocations := testing.AllocsPerRun(100, func() {
		d.Enter(req, unchanged)
		d.Leave(req, Reconcile{Started: time.Now(), Journal: journal})
	})
	if allocations > 0 {
		t.Errorf("%v allocations, want 0", allocations)
	}
}
