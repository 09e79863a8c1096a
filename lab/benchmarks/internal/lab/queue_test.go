// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(i int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: Namespace, Name: fmt.Sprint(i)}}
}

func testQueue(t *testing.T) *queue {
	q := newQueue(
		"test", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Millisecond),
		logr.Discard(),
	)
	t.Cleanup(q.ShutDown)
	return q
}

func TestQueue_CountsEveryAdd(t *testing.T) {
	q := testQueue(t)
	q.Add(request(0)) // before record
	q.record()
	q.Add(request(1))
	q.AddAfter(request(2), time.Nanosecond)
	q.AddRateLimited(request(3))
	q.AddWithOpts(priorityqueue.AddOpts{}, request(3), request(4))

	recorded, last := q.playback()
	if diff := cmp.Diff(
		map[reconcile.Request]int{request(1): 1, request(2): 1, request(3): 2, request(4): 1}, recorded,
	); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if last.IsZero() || last.After(time.Now()) {
		t.Errorf("the last request was added at %s", last)
	}
	q.Add(request(5))
	if again, _ := q.playback(); len(again) > 0 {
		t.Errorf("%v was recorded after playback", again)
	}
	if got := q.counted().added; got != 7 {
		t.Errorf("%d added, want 7", got)
	}
}

func TestQueue_CountsReconciles(t *testing.T) {
	q := testQueue(t)
	begin := time.Now()
	if !q.started().IsZero() {
		t.Error("it has started with an empty queue")
	}
	for i := range 3 {
		q.Add(request(i))
	}
	first := q.after(1)
	a, _, _ := q.GetWithPriority()
	started := q.started()
	if started.Before(begin) {
		t.Errorf("the first reconcile began at %s, before the test", started)
	}
	b, _ := q.Get()
	if diff := cmp.Diff(queueCount{added: 3, taken: 2}, q.counted(), cmp.AllowUnexported(queueCount{})); diff != "" {
		t.Errorf("with two in flight (-want +got):\n%s", diff)
	}
	select {
	case <-first:
		t.Error("no reconcile is done, but after reports one")
	default:
	}

	q.Done(a)
	<-first
	rest := q.after(2)
	q.Done(b)
	c, _, _ := q.GetWithPriority()
	q.Done(c)
	<-rest
	if diff := cmp.Diff(
		queueCount{added: 3, taken: 3, done: 3}, q.counted(), cmp.AllowUnexported(queueCount{}),
	); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
	if q.started() != started {
		t.Error("the start has changed")
	}
}

// The time in which a request is reconciled itself does not count: no other worker can take it.
func TestQueue_TimesOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue("test", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), logr.Discard())
		defer q.ShutDown()
		timed := request(1)
		q.takeWaits(timed.NamespacedName)
		get := func() {
			if got, _, _ := q.GetWithPriority(); got != timed {
				t.Fatalf("got %v", got)
			}
		}
		q.Add(timed)
		time.Sleep(3 * time.Second)
		get()
		q.Add(timed)
		time.Sleep(time.Minute)
		q.Done(timed)
		time.Sleep(5 * time.Second)
		get()
		q.Done(timed)
		want := []time.Duration{3 * time.Second, 5 * time.Second}
		if diff := cmp.Diff(want, q.takeWaits(timed.NamespacedName)); diff != "" {
			t.Errorf("waits (-want +got):\n%s", diff)
		}
	})
}
