// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/testkit/heap"
)

// TestHeapIsFlat creates and deletes resources. No memory may remain in use for them.
func TestHeapIsFlat(t *testing.T) {
	const bound = 256 << 10
	plain := newCostCluster(t)
	opinionated := newCostWorld(kindNamed(t, "opinionated watcher with observedGeneration"))
	for name, tc := range map[string]struct {
		pairs  int
		pair   func(n int)
		ledger *ledger
	}{
		"plain watcher": {1_000_000, func(n int) {
			obj := plain.newObject(n)
			plain.create(obj)
			plain.reconcile(t.Context(), t, obj)
			plain.delete(obj)
			plain.reconcile(t.Context(), t, obj)
			plain.wantCalls(t, 2)
		}, &plain.edge.ledger},
		"opinionated watcher": {50_000, func(n int) {
			opinionated.server.create(fmt.Sprint(n))
			opinionated.catchUpWith(fmt.Sprint(n))
			opinionated.server.delete(fmt.Sprint(n))
			opinionated.catchUpWith(fmt.Sprint(n))
			opinionated.forgetPast()
		}, &opinionated.process.edges[0].ledger},
	} {
		t.Run(name, func(t *testing.T) {
			switch {
			case testing.Short():
				tc.pairs = min(tc.pairs/20, 15_000) // 18 bytes a pair are found
			case raceDetector:
				tc.pairs /= 20
			}
			begin := time.Now()
			for n := range tc.pairs / 10 {
				tc.pair(n)
			}
			before := heap.InUse()
			for n := range tc.pairs - tc.pairs/10 {
				tc.pair(n + tc.pairs/10)
			}
			grown := heap.InUse() - before
			t.Logf(
				"%d pairs in %s, %d bytes more than after a tenth of them", tc.pairs, time.Since(begin).Round(time.Millisecond),
				grown,
			)
			if grown > bound {
				t.Errorf("the heap grew by %d bytes", grown)
			}
			if n := tc.ledger.len(); n != 0 {
				t.Errorf("%d records are left", n)
			}
		})
	}
}

func kindNamed(t *testing.T, name string) scheduleKind {
	t.Helper()
	for _, kind := range scheduleKinds {
		if kind.name == name {
			return kind
		}
	}
	t.Fatalf("there is no %s", name)
	return scheduleKind{}
}

// newCostWorld returns a world without injected events.
func newCostWorld(kind scheduleKind) *scheduleWorld {
	w := &scheduleWorld{
		ctx: calledby.Controller(), counts: map[string]int{}, lives: map[lifeKey]*life{}, kind: kind,
		policy: schedulePolicies[0], quiet: true,
	}
	w.server = &scheduleServer{world: w, proto: kind.proto, objects: map[string]subject{}}
	w.restart(0)
	return w
}

// catchUpWith delivers all events to the cache, and handles all requests for one resource.
func (w *scheduleWorld) catchUpWith(name string) {
	for p := w.process; p.position < len(w.server.history); {
		for p.advance() {
		}
		p.deliver()
		p.work(name)
	}
}

// forgetPast drops the data that only the checks of schedules need.
func (w *scheduleWorld) forgetPast() {
	w.server.history, w.process.position, w.pristine = nil, 0, nil
	clear(w.lives)
	clear(w.process.memories)
	clear(w.process.writes)
	clear(w.process.requests)
	clear(w.process.found)
	clear(w.process.queue.at)
}

// TestRequestsPerResource counts the writes for a resource from its creation to its deletion.
func TestRequestsPerResource(t *testing.T) {
	got := map[string][2]int{}
	for _, kind := range scheduleKinds {
		w := newCostWorld(kind)
		w.server.create("x")
		w.catchUpWith("x")
		created := w.counts["writes"]
		w.server.delete("x")
		w.catchUpWith("x")
		got[kind.name] = [2]int{created, w.counts["writes"] - created}
		if len(w.server.objects) > 0 {
			t.Errorf("%s: the resource still exists", kind.name)
		}
	}
	want := map[string][2]int{
		"plain watcher":    {0, 0},
		"plain reconciler": {0, 0},
		"opinionated watcher with observedGeneration":       {2, 1},
		"opinionated watcher without observedGeneration":    {1, 1},
		"opinionated watcher with an in-progress finalizer": {2, 1},
		"opinionated watcher with a former finalizer":       {1, 1},
		"opinionated reconciler":                            {2, 1},
		"fan-out of an opinionated and a plain watcher":     {1, 1},
		// One of them conflicts: the first handler has marked the status before the second sets its finalizer.
		"fan-out of two opinionated watchers": {4, 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected writes for the creation and for the deletion (-want +got):\n%s", diff)
	}
}

// TestUpdatesOfOneResource changes a resource a hundred times during each call of its handler.
func TestUpdatesOfOneResource(t *testing.T) {
	const updates, duringCall = 10_000, 100
	c := newCostCluster(t)
	latest := c.newObject(0)
	queued := true
	c.create(latest)
	c.during = func() {
		for range duringCall {
			if c.version == updates {
				return
			}
			changed := c.newObject(0)
			changed.UID, changed.Generation = latest.UID, latest.Generation+1
			latest, queued = changed, true
			c.update(latest)
		}
	}
	for queued {
		queued = false
		c.reconcile(t.Context(), t, latest)
	}
	if c.last != latest.ResourceVersion {
		t.Errorf("the last call was for version %s, want %s", c.last, latest.ResourceVersion)
	}
	c.wantCalls(t, updates/duringCall+1)
}
