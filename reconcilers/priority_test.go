// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// priorities is the queue of a controller. It records what is added to it, with the priority, and returns only the
// given request.
type priorities struct {
	priorityqueue.PriorityQueue[reconcilers.Request] // is nil: other methods are not called
	given                                            chan int
	// ready is closed when the controller has started its sources.
	ready   chan struct{}
	isReady sync.Once

	mu    sync.Mutex
	added []string
}

// newPriorities returns a queue, which returns the test request with each of the given priorities.
func newPriorities(given ...int) *priorities {
	q := &priorities{given: make(chan int, len(given)), ready: make(chan struct{})}
	for _, priority := range given {
		q.given <- priority
	}
	return q
}

// setup makes a builder use the queue.
func (q *priorities) setup(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
	bldr.WithOptions(controller.Options{NewQueue: func(
		string, workqueue.TypedRateLimiter[reconcilers.Request],
	) workqueue.TypedRateLimitingInterface[reconcilers.Request] {
		return q
	}})
	return nil
}

func (q *priorities) Add(req reconcilers.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

func (q *priorities) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcilers.Request) {
	priority, when := 0, ""
	if o.Priority != nil {
		priority = *o.Priority
	}
	switch {
	case o.RateLimited:
		when = " with back-off"
	case o.After > 0:
		when = " after " + o.After.String()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, req := range requests {
		q.added = append(q.added, fmt.Sprintf("%s at %d%s", req.Name, priority, when))
	}
}

// taken returns what was added since the last call.
func (q *priorities) taken() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	added := q.added
	q.added = nil
	return added
}

func (q *priorities) GetWithPriority() (req reconcilers.Request, priority int, shutdown bool) {
	q.isReady.Do(func() { close(q.ready) })
	priority, ok := <-q.given
	return testRequest, priority, !ok
}

func (q *priorities) Done(reconcilers.Request)   {}
func (q *priorities) Forget(reconcilers.Request) {}
func (q *priorities) ShutDown()                  { close(q.given) }

// Objects that exist at the start, and resyncs, are reconciled after the changes that users make.
func TestPriorities_OfEvents(t *testing.T) {
	w := newWorld(t)
	events, elsewhere := newEventCache(w.Scheme), newEventCache(w.Scheme)
	mgr, remote := newManager(t, w, events), newManager(t, w, elsewhere)
	queue, config := newPriorities(), configFor(w, mgr)
	r := &resourceReconciler{
		Config: config, Setup: queue.setup,
		Reconciler: sequence{
			newChildReconciler(w),
			newSecretReconciler(), // its children have no owner, and are tracked
			&syncReconciler{
				Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
					bldr.Watches(&corev1.Service{}, reconcilers.EnqueueTracked(ctx))
					return nil
				},
				Sync: func(context.Context, *fixture.Resource) error { return nil },
			},
			inCluster(config.WithCluster(remote), newChildReconciler(w)),
		},
	}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	start(t, mgr)
	<-queue.ready

	resource := func(name string) *fixture.Resource {
		return newResource(settled, func(r *fixture.Resource) { r.Name = name })
	}
	secret := newSecret("of-keeper")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theme"}}
	wantErr(t, nil, config.Tracker.TrackObject(secret, resource("keeper")))
	wantErr(t, nil, config.Tracker.TrackObject(service, resource("by-name")))
	ownedBy := func(owner string) *corev1.ConfigMap {
		return newConfigMap("child", func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].Name = owner })
	}

	for name, tc := range map[string]struct {
		events *eventCache
		obj    client.Object
		want   string
	}{
		"resource":                         {events, resource("self"), "self"},
		"child":                            {events, ownedBy("owner"), "owner"},
		"child without owner":              {events, secret, "keeper"},
		"tracked object":                   {events, service, "by-name"},
		"child in the cluster of a config": {elsewhere, ownedBy("remote"), "remote"},
	} {
		before := tc.obj.DeepCopyObject().(client.Object)
		before.SetResourceVersion("1")
		tc.obj.SetResourceVersion("2")
		for _, event := range []struct {
			what     string
			deliver  func(handler toolscache.ResourceEventHandler)
			priority int
		}{
			{"it is in the first list", func(h toolscache.ResourceEventHandler) { h.OnAdd(tc.obj, true) }, handler.LowPriority},
			{"it is created", func(h toolscache.ResourceEventHandler) { h.OnAdd(tc.obj, false) }, 0},
			{"it is changed", func(h toolscache.ResourceEventHandler) { h.OnUpdate(before, tc.obj) }, 0},
			{"it is resynced", func(h toolscache.ResourceEventHandler) { h.OnUpdate(tc.obj, tc.obj) }, handler.LowPriority},
			{"it is deleted", func(h toolscache.ResourceEventHandler) { h.OnDelete(tc.obj) }, 0},
		} {
			tc.events.deliver(tc.obj, event.deliver)
			want := []string{fmt.Sprintf("%s at %d", tc.want, event.priority)}
			equal(t, name+": requests when "+event.what, want, queue.taken())
		}
	}
}

func TestPriorities_OfTheStart(t *testing.T) {
	w := newWorld(t)
	mgr, queue := newManager(t, w, newEventCache(w.Scheme)), newPriorities()
	r := newAggregate(w, func(r *aggregateReconciler) { r.Config, r.Setup = configFor(w, mgr), queue.setup })
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	start(t, mgr)
	<-queue.ready
	equal(t, "requests at the start", []string{fmt.Sprintf("%s at -100", testRequest.Name)}, queue.taken())
}

// A retry keeps the priority of its request. The check of a halted resource in each sync period is a resync.
func TestPriorities_OfRetries(t *testing.T) {
	track := func(err error) subReconciler { return theme("missing", err) }
	failure := errors.New("on purpose")
	for name, tc := range map[string]struct {
		step subReconciler
		want string
		// resync reports whether the priority is low, whatever the priority of the request.
		resync bool
	}{
		"failed":                      {step: track(failure), want: "with back-off"},
		"halted, waits for an object": {step: track(reconcilers.ErrHaltSubReconcilers), want: "after 1h0m0s", resync: true},
		"halted, waits for nothing":   {step: theme("found", reconcilers.ErrHaltSubReconcilers), want: "with back-off"},
		"requested": {
			step: &syncReconciler{SyncWithResult: func(context.Context, *fixture.Resource) (reconcilers.Result, error) {
				return reconcilers.Result{RequeueAfter: time.Minute}, nil
			}},
			want: "after 1m0s",
		},
		"halted for a time": {
			step: &syncReconciler{SyncWithResult: func(context.Context, *fixture.Resource) (reconcilers.Result, error) {
				return reconcilers.Result{RequeueAfter: time.Minute}, reconcilers.ErrHaltSubReconcilers
			}},
			want: "after 1m0s",
		},
	} {
		for _, priority := range []int{0, handler.LowPriority} {
			t.Run(fmt.Sprintf("%s at %d", name, priority), func(t *testing.T) {
				w := newWorld(t, newResource(settled), newConfigMap("found"))
				mgr, queue := newManager(t, w, newEventCache(w.Scheme)), newPriorities(priority)
				r := &resourceReconciler{
					Config: configFor(w, mgr), Reconciler: tc.step,
					Setup: func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
						bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
						return queue.setup(ctx, mgr, bldr)
					},
				}
				wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
				start(t, mgr)
				var added []string
				deadline(t, "the request is added again", func() bool {
					added = slices.Concat(added, queue.taken())
					return len(added) > 0
				})
				want := priority
				if tc.resync {
					want = handler.LowPriority
				}
				equal(t, "requests", []string{fmt.Sprintf("%s at %d %s", testRequest.Name, want, tc.want)}, added)
			})
		}
	}
}

// Resources that keep failing must not delay the changes of users: from the second failure in a row on, their retries
// have the priority of resyncs.
func TestPriorities_OfResourcesThatKeepFailing(t *testing.T) {
	outcomes := func(all ...func() (reconcilers.Result, error)) subReconciler {
		call := 0
		return &syncReconciler{SyncWithResult: func(context.Context, *fixture.Resource) (reconcilers.Result, error) {
			call++
			return all[min(call, len(all))-1]()
		}}
	}
	returns := func(result reconcilers.Result, err error) func() (reconcilers.Result, error) {
		return func() (reconcilers.Result, error) { return result, err }
	}
	failure, none, minute := errors.New("on purpose"), reconcilers.Result{}, reconcilers.Result{RequeueAfter: time.Minute}
	conflict := apierrs.NewConflict(schema.GroupResource{Resource: "configmaps"}, "child", failure)
	const backOff, later = " with back-off", " after 1m0s"
	for name, tc := range map[string]struct {
		step subReconciler
		want []string
	}{
		"fails": {outcomes(returns(none, failure)), []string{"0" + backOff, "-100" + backOff, "-100" + backOff}},
		"fails and succeeds in turns": {
			outcomes(returns(none, failure), returns(minute, nil), returns(none, failure), returns(none, failure)),
			[]string{"0" + backOff, "0" + later, "0" + backOff, "-100" + backOff},
		},
		"one conflict": {
			outcomes(returns(none, conflict), returns(minute, nil)), []string{"0" + backOff, "0" + later},
		},
		"fails quietly": {outcomes(returns(none, reconcilers.ErrQuiet)), []string{"0" + backOff, "-100" + backOff}},
		"fails durably, nothing is tracked": {
			outcomes(returns(none, reconcilers.ErrDurable)), []string{"0" + backOff, "-100" + backOff},
		},
		"halts, nothing is tracked": {
			outcomes(returns(none, reconcilers.ErrHaltSubReconcilers)), []string{"0" + backOff, "-100" + backOff},
		},
		"fails, and is handled": {
			outcomes(returns(minute, errors.Join(failure, reconcilers.ErrRetryAfter))), []string{"0" + later, "-100" + later},
		},
		"fails below a Retry": {
			&retry{Reconciler: outcomes(returns(none, failure)), InitialDelay: time.Minute},
			[]string{"0" + later, "-100" + later},
		},
		"halts for a time": {
			outcomes(returns(minute, reconcilers.ErrHaltSubReconcilers)), []string{"0" + later, "0" + later, "0" + later},
		},
		"is called again after a time": {
			outcomes(returns(minute, reconcilers.ErrRetryAfter)), []string{"0" + later, "0" + later, "0" + later},
		},
		"succeeds, and is called again": {outcomes(returns(minute, nil)), []string{"0" + later, "0" + later, "0" + later}},
		"fails, with a priority": {
			outcomes(returns(reconcilers.Result{Priority: new(5)}, failure)), []string{"5" + backOff, "5" + backOff},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			queue := newPriorities(make([]int, len(tc.want))...)
			mgr := newManager(t, w, newEventCache(w.Scheme))
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: tc.step, Setup: queue.setup}
			wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
			start(t, mgr)
			added, want := []string{}, []string{}
			for _, priority := range tc.want {
				want = append(want, fmt.Sprintf("%s at %s", testRequest.Name, priority))
			}
			deadline(t, "the request is added again", func() bool {
				added = slices.Concat(added, queue.taken())
				return len(added) >= len(want)
			})
			// A Retry whose time has not come counts the rest of its delay.
			for i := range added {
				added[i] = strings.Replace(added[i], "after 59.", "after 1m0s~", 1)
				added[i], _, _ = strings.Cut(added[i], "~")
			}
			equal(t, "requests", want, added)
		})
	}
}

// Which request is next when a worker becomes free, with controller-runtime's queue and with that of FairNamespaces?
func TestPriorities_OfTheNextRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		fair bool
		want []string
	}{
		"in order":            {false, []string{"a/1", "b/9", "a/8", "a/9", "a/7", "a/2", "a/3", "b/1"}},
		"namespaces in turns": {true, []string{"a/1", "b/9", "a/8", "a/9", "a/7", "a/2", "b/1", "a/3"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			events := newEventCache(w.Scheme)
			mgr := newManager(t, w, events)
			config := configFor(w, mgr)
			config.FairNamespaces = tc.fair
			reconciled, proceed := make(requests), make(chan struct{})
			r := &resourceReconciler{
				Config: config, Reconciler: nothing(),
				BeforeReconcile: func(ctx context.Context, req reconcilers.Request) (context.Context, reconcilers.Result, error) {
					reconciled <- req
					<-proceed
					return ctx, reconcilers.Result{}, nil
				},
			}
			wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
			start(t, mgr)
			defer close(proceed)
			object := func(namespace, name string) *fixture.Resource {
				return newResource(settled, func(r *fixture.Resource) {
					r.Namespace, r.Name, r.ResourceVersion = namespace, name, "1"
				})
			}
			deadline(t, "the controller watches", func() bool { return events.isWatched(&fixture.Resource{}) })
			send := func(event func(h toolscache.ResourceEventHandler)) { events.deliver(&fixture.Resource{}, event) }
			listed := func(namespace, name string) {
				send(func(h toolscache.ResourceEventHandler) { h.OnAdd(object(namespace, name), true) })
			}
			listed("a", "1")
			got := []string{}
			next := func() {
				req := reconciled.next(t, strings.Join(got, " "))
				got = append(got, req.Namespace+"/"+req.Name)
			}
			next() // and the only worker is busy
			for _, name := range []string{"2", "3", "9"} {
				listed("a", name)
			}
			listed("b", "1")
			send(func(h toolscache.ResourceEventHandler) { h.OnAdd(object("b", "9"), false) })
			send(func(h toolscache.ResourceEventHandler) { h.OnAdd(object("a", "8"), false) })
			changed := object("a", "9")
			changed.ResourceVersion = "2"
			send(func(h toolscache.ResourceEventHandler) { h.OnUpdate(object("a", "9"), changed) })
			send(func(h toolscache.ResourceEventHandler) { h.OnDelete(object("a", "7")) })
			for range len(tc.want) - 1 {
				proceed <- struct{}{}
				next()
			}
			equal(t, "requests", tc.want, got)
		})
	}
}

func TestFairNamespaces_ExcludesAnotherQueue(t *testing.T) {
	w := newWorld(t)
	mgr, queue := newManager(t, w, newEventCache(w.Scheme)), newPriorities()
	config := configFor(w, mgr)
	config.FairNamespaces = true
	r := &resourceReconciler{Name: "mine", Config: config, Reconciler: nothing(), Setup: queue.setup}
	wantText(t, `ResourceReconciler "mine" must not define Config.FairNamespaces and NewQueue in controller.Options: `+
		`each chooses the queue`, r.SetupWithManager(context.Background(), mgr))
}
