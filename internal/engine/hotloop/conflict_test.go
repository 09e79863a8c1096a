// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/internal/engine/guard"
)

// controller writes one field of one object, which other clients write as well.
type controller struct {
	t        *testing.T
	detector Detector
	server   client.Client
	cluster  *guard.Cluster
	child    *corev1.ConfigMap
	object   guard.Object
	found    []Conflict
}

type journalKey struct{}

func newController(t *testing.T) *controller {
	// A tracker without managed fields is faster.
	tracker := clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	c := &controller{t: t, server: fake.NewClientBuilder().WithObjectTracker(tracker).Build()}
	c.child = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child"}}
	if err := c.server.Create(t.Context(), c.child.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	c.cluster = guard.NewCluster(c.server, c.server, nil, func(ctx context.Context) *guard.Journal {
		journal, _ := ctx.Value(journalKey{}).(*guard.Journal)
		return journal
	})
	c.object = c.cluster.Object(c.child)
	return c
}

// update writes the object, and returns its versions before and after the write.
func (c *controller) update(journal *guard.Journal) (before, after string) {
	c.t.Helper()
	ctx, current := context.WithValue(c.t.Context(), journalKey{}, journal), c.child.DeepCopy()
	if err := c.server.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil {
		c.t.Fatal(err)
	}
	before = current.ResourceVersion
	if err := c.cluster.Client().Update(ctx, current); err != nil {
		c.t.Fatal(err)
	}
	return before, current.ResourceVersion
}

// written returns the journal of a request that has written the object.
func (c *controller) written() *guard.Journal {
	journal := &guard.Journal{}
	c.update(journal)
	return journal
}

// write records that the controller replaces a value by another one. foreign is the number of writes by other clients
// before that.
func (c *controller) write(before, after uint64, foreign int, change ...func(*Reconcile)) {
	for range foreign {
		c.update(nil)
	}
	this := Reconcile{Started: time.Now(), Generation: 1, Exists: true, Journal: &guard.Journal{}}
	was, is := c.update(this.Journal)
	this.Changes = []Write{{
		Object: c.object, Before: was, After: is,
		Fields: []Field{{Path: "spec.replicas", Before: before, After: after}},
	}}
	for _, change := range change {
		change(&this)
	}
	found, _ := c.detector.Compare(request(0), this)
	c.found = append(c.found, found...)
	time.Sleep(time.Minute)
}

func TestDetector_ComparesWrites(t *testing.T) {
	const mine, theirs = 1, 2
	generation := func(i int) func(*Reconcile) { return func(r *Reconcile) { r.Generation = int64(i + 1) } }
	for name, tc := range map[string]struct {
		run  func(c *controller, i int)
		want int // conflicts after 20 writes
	}{
		"another client overwrites the value": {
			run: func(c *controller, _ int) { c.write(theirs, mine, 1) }, want: 1,
		},
		"another client writes a new value each time": {
			run: func(c *controller, i int) { c.write(uint64(10+i), mine, 1) }, want: 1,
		},
		"the resource itself, with new generations": {
			run: func(c *controller, i int) {
				c.write(theirs, mine, 1, generation(i), func(r *Reconcile) { r.Resource = c.object })
			},
			want: 1,
		},
		"the value is refused": {
			run: func(c *controller, _ int) {
				c.write(theirs, theirs, 0, func(r *Reconcile) {
					r.Changes[0].Fields[0].Refused, r.Changes[0].Fields[0].Requested = true, mine
				})
			},
			want: 1,
		},
		"a new value is refused each time": {
			run: func(c *controller, i int) {
				c.write(theirs, theirs, 0, func(r *Reconcile) {
					r.Changes[0].Fields[0].Refused, r.Changes[0].Fields[0].Requested = true, uint64(10+i)
				})
			},
		},
		"new generations": {
			run: func(c *controller, i int) { c.write(theirs, mine, 1, generation(i)) },
		},
		"only the controller writes": {
			run: func(c *controller, _ int) { c.write(theirs, mine, 0) },
		},
		"the cache is older than the last write": {
			run: func(c *controller, _ int) {
				c.write(theirs, mine, 1, func(r *Reconcile) { r.Changes[0].Before = "1" })
			},
		},
		"the server stores no change": {
			run: func(c *controller, _ int) {
				c.write(theirs, mine, 1, func(r *Reconcile) { r.Changes[0].After = r.Changes[0].Before })
			},
		},
		"progress": {
			run: func(c *controller, i int) { c.write(uint64(i), uint64(i+1), 1) },
		},
		"alternate values": {
			run: func(c *controller, i int) { c.write(uint64(i%2), uint64((i+1)%2), 1) },
		},
		"once a day": {
			run: func(c *controller, _ int) {
				c.write(theirs, mine, 1)
				time.Sleep(24 * time.Hour)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newController(t)
				for i := range 20 {
					tc.run(c, i)
				}
				if len(c.found) != tc.want {
					t.Errorf("conflicts: %+v, want %d", c.found, tc.want)
				}
				for _, found := range c.found {
					if found.Times != ConflictAt || found.Within != ConflictAt*time.Minute {
						t.Errorf("conflict: got %+v, want %d times in as many minutes", found, ConflictAt)
					}
				}
			})
		})
	}
}

// A conflict delays requests, and the delay grows. After a long time without it, the conflict is new.
func TestDetector_DelaysConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newController(t)
		for range ConflictAt {
			c.write(2, 1, 1)
		}
		waits := []time.Duration{}
		for range 8 {
			c.write(2, 1, 1)
			waits = append(waits, c.detector.Enter(request(0), unchanged).Wait+time.Minute)
		}
		c.write(2, 1, 1)
		if got := c.detector.histories[requestID(request(0))].delay; got != lastDelay {
			t.Errorf("delay: got %s, want %s; waits %v", got, lastDelay, waits)
		}
		entry := c.detector.Enter(request(0), unchanged)
		if !entry.Inspect || !entry.InspectWrites || entry.Wait > 0 {
			t.Errorf("entry a minute after a conflict: %+v, want an inspection and no wait", entry)
		}
		time.Sleep(conflictGap)
		for range 2 * ConflictAt {
			c.write(2, 1, 1)
		}
		if len(c.found) != 2 {
			t.Errorf("%d conflicts, want a second one", len(c.found))
		}
	})
}

func TestDetector_BoundsHistories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newController(t)
		d, journal := &c.detector, c.written()
		for i := range maxHistories + 10 {
			d.Compare(request(i), Reconcile{Exists: true, Journal: journal})
		}
		if len(d.histories) != maxHistories {
			t.Errorf("%d histories, want %d", len(d.histories), maxHistories)
		}
		d.Compare(request(1), Reconcile{Journal: journal})
		if d.histories[requestID(request(1))] != nil || len(d.histories) != maxHistories-1 {
			t.Errorf("the history of a resource that no longer exists is kept, %d histories", len(d.histories))
		}
		for i := range 10 * maxFields {
			w := Write{Before: "1", After: "2", Fields: []Field{{Path: fmt.Sprint(i), After: 1}}}
			d.Compare(request(0), Reconcile{Exists: true, Journal: journal, Changes: []Write{w}})
		}
		if got := len(d.histories[requestID(request(0))].fields); got != maxFields {
			t.Errorf("%d fields, want %d", got, maxFields)
		}
		for i := range 2 * maxVersions {
			c.child.Name = fmt.Sprint("child-", i)
			c.child.ResourceVersion = ""
			if err := c.server.Create(t.Context(), c.child); err != nil {
				t.Fatal(err)
			}
			d.Compare(request(0), Reconcile{Exists: true, Journal: c.written()})
		}
		if got := len(d.histories[requestID(request(0))].versions); got != maxVersions {
			t.Errorf("%d versions, want %d", got, maxVersions)
		}
		time.Sleep(conflictGap + sweepInterval)
		d.Compare(request(0), Reconcile{Exists: true, Journal: journal})
		if len(d.histories) != 1 {
			t.Errorf("%d histories after 12 hours, want 1", len(d.histories))
		}
	})
}

func TestDetector_AllocatesNothingForAResourceThatWasWritten(t *testing.T) {
	c := newController(t)
	c.detector.Compare(request(0), Reconcile{Exists: true, Journal: c.written()})
	journal, req := &guard.Journal{}, request(0)
	allocations := testing.AllocsPerRun(100, func() {
		if !c.detector.Enter(req, unchanged).InspectWrites {
			t.Fatal("writes are not inspected")
		}
		this := Reconcile{Started: time.Now(), Exists: true, Journal: journal}
		c.detector.Compare(req, this)
		c.detector.Leave(req, this)
	})
	if allocations > 0 {
		t.Errorf("%v allocations, want 0", allocations)
	}
}
