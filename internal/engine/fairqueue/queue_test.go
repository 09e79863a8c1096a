// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/heap"
)

// newQueue returns a queue whose back-off is 1, 2, 4 … seconds. It has metrics if it has a name.
func newQueue(name string) priorityqueue.PriorityQueue[reconcile.Request] {
	return New(name, newLimiter()).(priorityqueue.PriorityQueue[reconcile.Request])
}

func newLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Hour)
}

// request returns the request of a name with a namespace.
func request(name string) reconcile.Request {
	namespace, name, _ := strings.Cut(name, "/")
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func withPriority(priority int) priorityqueue.AddOpts {
	return priorityqueue.AddOpts{Priority: &priority}
}

// In which order does a worker get the requests?
func TestOrder(t *testing.T) {
	type pq = priorityqueue.PriorityQueue[reconcile.Request]
	low := withPriority(handler.LowPriority)
	add := func(q pq, names ...string) {
		for _, name := range names {
			q.Add(request(name))
		}
	}
	addLow := func(q pq, names ...string) {
		for _, name := range names {
			q.AddWithOpts(low, request(name))
		}
	}
	for name, tc := range map[string]struct {
		do   func(q pq)
		want string
	}{
		"one namespace":       {func(q pq) { add(q, "a/1", "a/2", "a/3") }, "a/1 a/2 a/3"},
		"cluster-scoped":      {func(q pq) { add(q, "/1", "/2") }, "/1 /2"},
		"namespaces in turns": {func(q pq) { add(q, "a/1", "a/2", "a/3", "b/1", "b/2") }, "a/1 b/1 a/2 b/2 a/3"},
		"a namespace that comes later": {func(q pq) {
			add(q, "a/1", "a/2", "a/3", "a/4")
			take(q, 2)
			add(q, "b/1")
		}, "a/3 b/1 a/4"},
		"added twice": {func(q pq) { add(q, "a/1", "b/1", "a/1") }, "a/1 b/1"},
		"the priority counts before the turn": {func(q pq) {
			addLow(q, "a/1", "a/2", "b/1")
			add(q, "a/3", "a/4")
		}, "a/3 a/4 a/1@-100 b/1@-100 a/2@-100"},
		"raised by a change": {func(q pq) {
			addLow(q, "a/1", "a/2", "a/3", "b/1")
			add(q, "a/3")
		}, "a/3 a/1@-100 b/1@-100 a/2@-100"},
		"not lowered by a resync": {func(q pq) {
			add(q, "a/1")
			addLow(q, "b/1", "a/1")
		}, "a/1 b/1@-100"},
		"all of a level raised": {func(q pq) {
			addLow(q, "a/1", "b/1")
			add(q, "b/1", "a/1")
		}, "b/1 a/1"},
		"not while it is reconciled": {func(q pq) {
			add(q, "a/1")
			req := take(q, 1)[0]
			add(q, "a/1", "b/1")
			if got := q.Len(); got != 1 {
				panic(fmt.Sprintf("%d requests, want 1", got))
			}
			q.Done(req)
		}, "b/1 a/1"},
		"raised while it is reconciled": {func(q pq) {
			add(q, "a/1")
			req := take(q, 1)[0]
			addLow(q, "a/1", "b/1")
			add(q, "a/1")
			q.Done(req)
		}, "a/1 b/1@-100"},
		"delayed": {func(q pq) {
			q.AddAfter(request("a/1"), time.Minute)
			q.AddAfter(request("a/2"), time.Second)
			add(q, "a/3")
		}, "a/3 +1s a/2 +59s a/1"},
		"delayed twice": {func(q pq) {
			q.AddAfter(request("a/1"), time.Minute)
			q.AddAfter(request("a/1"), time.Second)
			q.AddAfter(request("a/1"), time.Hour)
		}, "+1s a/1"},
		"delayed, and changed": {func(q pq) {
			q.AddWithOpts(priorityqueue.AddOpts{After: time.Minute, Priority: low.Priority}, request("a/1"))
			add(q, "a/1")
		}, "a/1"},
		"delayed, and resynced": {func(q pq) {
			q.AddAfter(request("a/1"), time.Minute)
			addLow(q, "a/1")
		}, "a/1"},
		"due, and delayed": {func(q pq) {
			add(q, "a/1")
			q.AddAfter(request("a/1"), time.Minute)
		}, "a/1"},
		"delayed ones become due in turns": {func(q pq) {
			for _, name := range []string{"a/1", "a/2", "a/3", "b/1"} {
				q.AddAfter(request(name), time.Minute)
			}
		}, "+1m0s a/1 b/1 a/2 a/3"},
		"backed off": {func(q pq) {
			q.AddRateLimited(request("a/1"))
			q.AddRateLimited(request("b/1"))
			q.AddRateLimited(request("b/1"))
			q.AddRateLimited(request("c/1"))
			q.Forget(request("c/1"))
			q.AddRateLimited(request("c/1"))
		}, "+1s a/1 b/1 c/1"},
		"backed off again": {func(q pq) {
			for range 3 {
				q.AddRateLimited(request("a/1"))
				time.Sleep(time.Minute)
				q.Done(take(q, 1)[0])
			}
			q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: low.Priority}, request("a/1"))
		}, "+8s a/1@-100"},
		"the earlier of back-off and delay": {func(q pq) {
			q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, After: time.Minute}, request("a/1"))
		}, "+1s a/1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue("")
				defer q.ShutDown()
				tc.do(q)
				got, since, idle := []string{}, time.Now(), 0
				for idle < 2 {
					synctest.Wait()
					if q.Len() == 0 {
						if next := untilNext(q.(*Queue[reconcile.Request])); next > 0 {
							time.Sleep(next)
						} else {
							idle++
						}
						continue
					}
					if passed := time.Since(since); passed > 0 {
						got, since = append(got, "+"+passed.String()), time.Now()
					}
					req, priority, _ := q.GetWithPriority()
					q.Done(req)
					text := req.Namespace + "/" + req.Name
					if priority != 0 {
						text += "@" + strconv.Itoa(priority)
					}
					got = append(got, text)
				}
				if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// untilNext returns the time until the first delay ends, or 0 without delays.
func untilNext(q *Queue[reconcile.Request]) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.delays) == 0 {
		return 0
	}
	return time.Until(q.delays[0].until)
}

// take returns the next requests.
func take(q workqueue.TypedRateLimitingInterface[reconcile.Request], n int) []reconcile.Request {
	taken := make([]reconcile.Request, n)
	for i := range taken {
		taken[i], _ = q.Get()
	}
	return taken
}

// How many requests come before the only request of another namespace?
func TestBusyNamespaceDoesNotDelayAnother(t *testing.T) {
	q := newQueue("")
	defer q.ShutDown()
	for i := range 50_000 {
		q.Add(request("busy/" + strconv.Itoa(i)))
	}
	q.Add(request("quiet/1"))
	for before := range 2 {
		if take(q, 1)[0].Namespace == "quiet" {
			return
		}
		if before == 1 {
			t.Error("the quiet namespace is not second")
		}
	}
}

func TestShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, worker := newQueue("name"), make(chan bool)
		go func() {
			_, shutdown := q.Get()
			worker <- shutdown
		}()
		q.AddAfter(request("a/1"), time.Minute)
		synctest.Wait()
		q.ShutDown()
		if !<-worker {
			t.Error("a worker that waits was not told to end")
		}
		time.Sleep(time.Hour)
		q.Add(request("a/2"))
		q.ShutDownWithDrain()
		if _, shutdown := q.Get(); !shutdown || !q.ShuttingDown() || q.Len() > 0 {
			t.Errorf("shutdown %v, shutting down %v, %d requests", shutdown, q.ShuttingDown(), q.Len())
		}
	})
	q := newQueue("")
	q.Add(request("a/1"))
	q.ShutDown()
	if req, shutdown := q.Get(); !shutdown {
		t.Errorf("got %v after ShutDown", req)
	}
}

// Which metrics does the queue have?
func TestMetrics(t *testing.T) {
	name := "fairly-" + strconv.FormatUint(rand.Uint64(), 36)
	q := newQueue(name)
	defer q.ShutDown()
	q.Add(request("a/1"))
	q.AddWithOpts(withPriority(handler.LowPriority), request("a/2"), request("a/3"))
	q.AddAfter(request("a/4"), time.Hour)
	q.AddAfter(request("a/4"), time.Hour)
	q.Done(take(q, 1)[0])
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == name {
					got[family.GetName()] += metric.GetGauge().GetValue() + metric.GetCounter().GetValue() +
						float64(metric.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	want := map[string]float64{
		"workqueue_adds_total": 3, "workqueue_depth": 2, "workqueue_retries_total": 2,
		"workqueue_queue_duration_seconds": 1, "workqueue_work_duration_seconds": 1,
		"workqueue_unfinished_work_seconds": 0, "workqueue_longest_running_processor_seconds": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// No request is lost, and none is reconciled twice at a time, with many workers.
func TestConcurrentWorkers(t *testing.T) {
	const producers, workers, changes, objects = 4, 8, 2000, 40
	q := newQueue("")
	var (
		mu       sync.Mutex
		state    = map[reconcile.Request]int{} // of the "cluster"
		seen     = map[reconcile.Request]int{}
		running  = map[reconcile.Request]bool{}
		all, end sync.WaitGroup
	)
	for range workers {
		end.Go(func() {
			for {
				req, shutdown := q.Get()
				if shutdown {
					return
				}
				mu.Lock()
				if running[req] {
					t.Errorf("%v is reconciled twice at a time", req)
				}
				running[req] = true
				current := state[req]
				mu.Unlock()
				mu.Lock()
				seen[req], running[req] = current, false
				mu.Unlock()
				q.Done(req)
			}
		})
	}
	for p := range producers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(p), 0))
			for range changes {
				req := request(fmt.Sprintf("%d/%d", random.IntN(3), random.IntN(objects)))
				mu.Lock()
				state[req]++
				mu.Unlock()
				switch random.IntN(4) {
				case 0:
					q.AddAfter(req, time.Duration(random.IntN(1000))*time.Microsecond)
				case 1:
					q.AddWithOpts(withPriority(-random.IntN(3)), req)
				default:
					q.Add(req)
				}
			}
		})
	}
	all.Wait()
	for deadline := time.Now().Add(10 * time.Second); ; {
		mu.Lock()
		diff := cmp.Diff(state, seen)
		mu.Unlock()
		if diff == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("changes that no worker has seen (-made +seen):\n%s", diff)
		}
		time.Sleep(time.Millisecond)
	}
	q.ShutDown()
	end.Wait()
	fair := q.(*Queue[reconcile.Request])
	if len(fair.order.known)+len(fair.order.taken)+len(fair.order.levels)+len(fair.order.turns)+
		len(fair.delayed) > 0 {
		t.Errorf("the queue keeps requests that are done: %+v", fair.order)
	}
}

func BenchmarkQueue(b *testing.B) {
	type pq = priorityqueue.PriorityQueue[reconcile.Request]
	for name, create := range map[string]func() pq{
		"fair":               func() pq { return newQueue("") },
		"controller-runtime": func() pq { return priorityqueue.New[reconcile.Request]("") },
	} {
		for _, depth := range []int{1, 50_000} {
			b.Run(fmt.Sprintf("%s/%d", name, depth), func(b *testing.B) {
				q := create()
				defer q.ShutDown()
				requests := []reconcile.Request{}
				for i := range depth {
					requests = append(requests, request(fmt.Sprintf("%d/%d", i%100, i)))
				}
				before := heap.InUse()
				q.AddWithOpts(priorityqueue.AddOpts{}, requests...)
				q.Len() // the queue of controller-runtime adds later
				perItem := float64(heap.InUse()-before) / float64(depth)
				b.ReportAllocs()
				for b.Loop() {
					req, _ := q.Get()
					q.Done(req)
					q.Add(req)
				}
				b.ReportMetric(perItem, "B/request")
			})
		}
	}
}
