// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

func TestWeaknessC2_ManyUpdatesLeadToFewCalls(t *testing.T) {
	inLab(t, func(l *lab) {
		const interval, takes = time.Millisecond, time.Second
		updates := 10_000
		if testing.Short() {
			updates = 2_000
		}
		n := &notebook[*fixture.Resource]{answer: func(string, *fixture.Resource) error { time.Sleep(takes); return nil }}
		l.start(controller(opinionated(n)))
		l.must(l.Create(l.Context(), newResource("a", "0")))
		for i := range updates {
			changeIn(l, newResource("a", ""), setValue(strconv.Itoa(i+1)))
			l.pass(interval)
		}
		l.pass(time.Minute)
		calls := n.take()
		t.Logf("%d updates in %s led to %d calls of %s each", updates, time.Duration(updates)*interval, len(calls), takes)
		if most := int(time.Duration(updates)*interval/takes) + 2; len(calls) > most {
			t.Errorf("%d calls, want at most %d", len(calls), most)
		}
		if last := calls[len(calls)-1]; !strings.HasSuffix(last, fmt.Sprintf(">%d", updates)) {
			t.Errorf("the last call is %q", last)
		}
	})
}

// 10,000 objects fail for half an hour because of a common cause.
func TestWeaknessC4_FailureStormBacksOff(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 objects fail for half an hour: with -short, single objects back off")
	}
	inLab(t, func(l *lab) {
		const objects, outage = 10_000, 30 * time.Minute
		mu, perMinute, done := sync.Mutex{}, map[time.Duration]int{}, map[string]bool{}
		begin := time.Now()
		n := &notebook[*fixture.Resource]{answer: func(_ string, r *fixture.Resource) error {
			mu.Lock()
			defer mu.Unlock()
			since := time.Since(begin)
			perMinute[since.Truncate(time.Minute)]++
			if since < outage {
				return errTest
			}
			done[r.Name] = true
			return nil
		}}
		for i := range objects {
			l.must(l.Create(l.Context(), newResource(strconv.Itoa(i), "1")))
		}
		l.start(
			controller(plain(n, func(r *operator.WithEdge[*fixture.Resource]) { r.RetryPolicy = operator.DefaultRetryPolicy })),
		)
		l.pass(outage - time.Since(begin) - time.Nanosecond)
		failures := len(n.take())
		mu.Lock()
		last := perMinute[outage-time.Minute]
		mu.Unlock()
		l.pass(6 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		t.Logf(
			"%d calls failed in %s, %d of them in its last minute; %d objects were done 6 minutes later", failures, outage, last,
			len(done),
		)
		// 1, 2, 4 … 256 seconds, then every 5 minutes, plus or minus 20 percent.
		if perObject := failures / objects; perObject > 17 {
			t.Errorf("%d calls for each object in %s", perObject, outage)
		}
		if last > objects/3 { // one attempt each 5 minutes, spread by jitter
			t.Errorf("%d of %d objects are tried within one minute", last, objects)
		}
		if calls := len(n.take()); len(done) != objects || calls != objects {
			t.Errorf("%d of %d objects were done after the outage, in %d calls", len(done), objects, calls)
		}
	})
}

// requests is the number of write requests of a handler, by verb. Reads come from the cache, and events are not
// counted.
type requests = map[string]int

func TestWeaknessC6_RequestsAreFew(t *testing.T) {
	for name, tc := range map[string]struct {
		handler                   func(*notebook[*fixture.Resource]) handler
		created, updated, deleted requests
		reason                    string
	}{
		"plain": {
			handler: func(n *notebook[*fixture.Resource]) handler { return operator.WatcherReconciler(n) },
			reason:  "no writes",
		},
		"opinionated": {
			handler: func(n *notebook[*fixture.Resource]) handler { return operator.OpinionatedWatcher(finalizer, n) },
			created: requests{"PATCH": 1, "PATCH status": 1}, updated: requests{"PATCH status": 1},
			deleted: requests{"PATCH": 1},
			reason:  "the finalizer, the observed generation, and the finalizer again",
		},
		"opinionated, with an in-progress finalizer": {
			handler: func(n *notebook[*fixture.Resource]) handler {
				o := operator.OpinionatedWatcher(finalizer, n)
				o.InProgressFinalizer = finalizer + "-wip"
				return o
			},
			created: requests{"PATCH": 2, "PATCH status": 1}, updated: requests{"PATCH status": 1},
			deleted: requests{"PATCH": 1},
			reason:  "one finalizer is replaced by the other",
		},
		"a tree": {
			handler: func(n *notebook[*fixture.Resource]) handler {
				watcher := operator.WatcherReconciler(n)
				watcher.React = operator.ReactSpec
				watcher.Finalizers = []string{finalizer}
				return operator.NewOpinionated[*fixture.Resource](
					finalizer, operator.AsReconciler(reconcilers.Sequence[*fixture.Resource]{watcher}),
				)
			},
			created: requests{"PATCH": 1, "PUT status": 1}, updated: requests{"PUT status": 1}, deleted: requests{"PATCH": 1},
			reason: "the status is written by the root",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			n := &notebook[*fixture.Resource]{}
			e.start(controller(tc.handler(n)))
			fence := func() { // another object has passed all steps, so no request for this one is outstanding
				t.Helper()
				settled := ""
				e.Eventually(func() error {
					r := newResource("a", "")
					if err := client.IgnoreNotFound(e.read(r)); err != nil {
						return err
					}
					if before := settled; before != r.ResourceVersion || e.traffic.idle() < quiet {
						settled = r.ResourceVersion
						return fmt.Errorf("requests are still in progress")
					}
					return nil
				})
			}
			expect := func(what string, want requests) {
				t.Helper()
				fence()
				got := e.traffic.take()
				t.Logf("%s: %v", what, got)
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("requests for %s, %s (-want +got):\n%s", what, tc.reason, diff)
				}
			}
			e.create(newResource("a", "1"))
			n.awaitLines(t, "Add a 1")
			expect("a creation", tc.created)
			change(e, newResource("a", ""), setValue("2"))
			n.awaitLines(t, "Update a 1>2")
			expect("an update", tc.updated)
			e.remove(newResource("a", ""))
			n.awaitLines(t, "Delete a 2")
			expect("a deletion", tc.deleted)
		})
	}
}
