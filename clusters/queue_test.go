// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/offline"
)

// testQueue is a queue with lines of clusters, in a bubble of virtual time.
type testQueue struct {
	*testing.T
	*queue
	shared *shared
	taken  chan Request
}

func inBubble(t *testing.T, test func(q *testQueue)) {
	t.Helper()
	inFairBubble(t, false, test)
}

// inFairBubble is inBubble with namespaces that take turns if fair is set.
func inFairBubble(t *testing.T, fair bool, test func(q *testQueue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := &testQueue{T: t, queue: newQueue("test", fair), taken: make(chan Request)}
		q.shared = &shared{name: "test", workersOfCluster: 2, started: make(chan struct{}), made: q.queue}
		close(q.shared.started)
		go func() {
			defer close(q.taken)
			for {
				req, shutdown := q.Get()
				if shutdown {
					return
				}
				q.taken <- req
			}
		}()
		test(q)
		q.ShutDown()
		for req := range q.taken { // what the last Get has returned
			q.Done(req)
		}
	})
}

// engage adds a cluster whose caches are not filled.
func (q *testQueue) engage(name string) *line {
	offlineManager := &offline.Manager{}
	m := &member{
		fleet: &Fleet{mgr: offlineManager}, name: name, log: logr.Discard(), cluster: &offlineManager.Cluster,
		ctx: context.Background(),
	}
	c := &built{shared: q.shared}
	m.view = &view{member: m, controllers: []*built{c}}
	l := q.join(m, c)
	q.limit(l, workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Hour))
	return l
}

// named returns the request of a name, with a namespace if it has a slash.
func named(name string) reconcile.Request {
	namespace, inNamespace, found := strings.Cut(name, "/")
	if !found {
		namespace, inNamespace = "", name
	}
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: inNamespace}}
}

// enters adds requests as a source does.
func (q *testQueue) enters(l *line, priority int, names ...string) {
	e := &entrance{queue: q.queue, line: l}
	for _, name := range names {
		e.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, named(name))
	}
}

// takes checks which requests workers take now, as cluster/name.
func (q *testQueue) takes(want ...string) {
	q.Helper()
	got := []string{}
	for {
		synctest.Wait()
		select {
		case req := <-q.taken:
			got = append(got, req.ClusterName+"/"+strings.TrimPrefix(req.NamespacedName.String(), "/"))
			continue
		default:
		}
		break
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		q.Errorf("taken requests (-want +got):\n%s", diff)
	}
}

func (q *testQueue) done(l *line, name string) { q.Done(Request{l.member.name, named(name)}) }

func TestQueue_clustersTakeTurns(t *testing.T) {
	inBubble(t, func(q *testQueue) {
		a, b := q.engage("a"), q.engage("b")
		q.open(a)
		q.open(b)
		q.enters(a, 0, "1", "2", "3", "4")
		q.takes("a/1", "a/2") // a cluster may occupy two workers
		q.enters(b, 0, "1")
		q.takes("b/1")
		q.enters(a, 7, "5", "4")
		q.takes()
		q.done(a, "1")
		q.takes("a/5") // of the highest priority, it was the first to have it
		q.done(a, "2")
		q.takes("a/4")
		q.done(a, "5")
		q.done(a, "4")
		q.takes("a/3")
		q.done(a, "3")
		q.done(b, "1")
	})
}

// A cluster has requests of one namespace, then one of another. Does that one wait for all others? In each case, the
// cluster occupies all workers that it may.
func TestQueue_namespacesTakeTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		fair bool
		want []string
	}{
		"by default":          {want: []string{"a/x/3", "a/x/4", "a/y/1"}},
		"with FairNamespaces": {fair: true, want: []string{"a/x/3", "a/y/1", "a/x/4"}},
	} {
		t.Run(name, func(t *testing.T) {
			inFairBubble(t, tc.fair, func(q *testQueue) {
				a, b := q.engage("a"), q.engage("b")
				q.open(a)
				q.open(b)
				q.enters(a, 0, "x/1", "x/2")
				q.takes("a/x/1", "a/x/2")
				q.enters(a, 0, "x/3", "x/4", "y/1")
				q.takes()
				q.enters(b, 0, "x/1")
				q.takes("b/x/1") // the clusters take turns in any case
				q.done(b, "x/1")
				last := []string{"x/1", "x/2"}
				for _, want := range tc.want {
					q.done(a, last[0])
					q.takes(want)
					last = append(last[1:], strings.TrimPrefix(want, "a/"))
				}
				q.done(a, last[0])
				q.done(a, last[1])
			})
		})
	}
}

func TestQueue_waitsForCaches(t *testing.T) {
	inBubble(t, func(q *testQueue) {
		a, b := q.engage("a"), q.engage("b")
		q.open(b)
		q.enters(a, 0, "1", "2", "1")
		q.enters(b, 0, "1")
		q.takes("b/1")
		q.open(a)
		q.takes("a/1", "a/2")
		for _, name := range []string{"1", "2"} {
			q.done(a, name)
		}
		q.done(b, "1")
		q.takes()
	})
}

func TestQueue_pausesWhatIsLate(t *testing.T) {
	inBubble(t, func(q *testQueue) {
		a := q.engage("a")
		q.open(a)
		q.enters(a, 0, "1", "2", "3", "4")
		q.takes("a/1", "a/2")
		q.ended(a, true) // both in one pause
		q.done(a, "1")
		q.ended(a, true)
		q.done(a, "2")
		q.takes()
		time.Sleep(firstPause)
		q.takes("a/3") // one is tried
		q.ended(a, true)
		q.done(a, "3")
		time.Sleep(firstPause)
		q.takes() // the second pause is longer
		time.Sleep(firstPause)
		q.takes("a/4")
		q.enters(a, 0, "5", "6")
		q.takes()
		q.ended(a, false)
		q.done(a, "4")
		q.takes("a/5", "a/6")
		q.done(a, "5")
		q.done(a, "6")
	})
}

func TestQueue_leave(t *testing.T) {
	inBubble(t, func(q *testQueue) {
		a, b := q.engage("a"), q.engage("b")
		q.open(a)
		q.open(b)
		q.enters(a, 0, "1", "2", "3")
		q.takes("a/1", "a/2")
		q.AddAfter(Request{"a", named("later")}, time.Hour)
		q.AddAfter(Request{"b", named("later")}, time.Hour)
		idle := q.leave(a)
		q.enters(a, 0, "4")
		q.AddRateLimited(Request{"a", named("1")})
		q.done(a, "1")
		if isClosed(idle) {
			t.Error("the cluster is idle while a worker reconciles a request")
		}
		q.done(a, "2")
		if !isClosed(idle) {
			t.Error("the cluster is not idle after its last request")
		}
		again := q.engage("a")
		q.open(again)
		q.enters(again, 0, "5")
		q.takes("a/5")
		q.done(again, "5")
		time.Sleep(time.Hour)
		q.takes("b/later")
		q.done(b, "later")
	})
}

// TestQueue_limiters checks that each cluster has its own delays.
func TestQueue_limiters(t *testing.T) {
	inBubble(t, func(q *testQueue) {
		a, b := q.engage("a"), q.engage("b")
		q.open(a)
		q.open(b)
		for range 3 {
			q.AddRateLimited(Request{"a", named("1")})
			time.Sleep(time.Hour)
			q.takes("a/1")
			q.done(a, "1")
		}
		q.AddRateLimited(Request{"b", named("1")})
		got := []int{q.NumRequeues(Request{"a", named("1")}), q.NumRequeues(Request{"b", named("1")})}
		if diff := cmp.Diff([]int{3, 1}, got); diff != "" {
			t.Errorf("failures of the object in each cluster (-want +got):\n%s", diff)
		}
		time.Sleep(time.Second)
		q.takes("b/1")
		q.done(b, "1")
		q.Forget(Request{"a", named("1")})
		if left := q.NumRequeues(Request{"a", named("1")}); left != 0 {
			t.Errorf("failures after Forget = %d", left)
		}
	})
}
