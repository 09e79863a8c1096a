// SPDX-License-Identifier: Apache-2.0

package ctrlfields

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/engine/fairqueue"
	"trueup.dev/internal/offline"
)

var never = reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, errors.New("the reconciler was called")
})

// built adds a controller to a manager and returns what the manager has kept.
func built(t *testing.T, options controller.Options) manager.Runnable {
	t.Helper()
	m := &offline.Manager{Cluster: offline.Cluster{Scheme: clientgoscheme.Scheme}}
	if _, err := controller.New("built", m, options); err != nil {
		t.Fatal(err)
	}
	runnables := m.Runnables()
	if len(runnables) != 1 {
		t.Fatalf("the manager has %d runnables", len(runnables))
	}
	return runnables[0]
}

func TestController(t *testing.T) {
	options := controller.Options{
		MaxConcurrentReconciles: 3, CacheSyncTimeout: time.Minute, ReconciliationTimeout: time.Second,
		RecoverPanic: new(false), NeedLeaderElection: new(false), EnableWarmup: new(true),
	}
	with := options
	with.Reconciler = never
	runnable := built(t, with)
	c, ok := ControllerOf(runnable)
	if !ok {
		t.Fatalf("%T is not recognized as a controller", runnable)
	}
	if c.Name() != "built" {
		t.Errorf("name %q", c.Name())
	}
	if diff := cmp.Diff(options, c.Options(), cmpopts.IgnoreFields(controller.Options{}, "Logger")); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}

	queues, requests := make(chan string, 1), make(chan reconcile.Request, 1)
	c.Enqueue(reconcile.Request{}) // has no effect: there is no queue yet
	c.SetNewQueue(func(
		name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
	) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		queues <- name
		return workqueue.NewTypedRateLimitingQueue(limiter)
	})
	c.WrapReconciler(func(inner reconcile.Reconciler) reconcile.Reconciler {
		if _, err := inner.Reconcile(t.Context(), reconcile.Request{}); err == nil {
			t.Error("the wrapped reconciler is not the one of the options")
		}
		return reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
			requests <- request
			return reconcile.Result{}, nil
		})
	})
	// The first request shows that the controller has started.
	first := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	})
	if err := runnable.(controller.Controller).Watch(first); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runnable.Start(ctx) }()
	if name := <-queues; name != "built" {
		t.Errorf("queue of %q", name)
	}
	if first := <-requests; first != (reconcile.Request{}) {
		t.Errorf("first request %v", first)
	}
	want := reconcile.Request{NamespacedName: types.NamespacedName{Name: "it"}}
	c.Enqueue(want)
	if got := <-requests; got != want {
		t.Errorf("request %v, want %v", got, want)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestController_HasDefaultQueue(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options controller.Options
		// want is whether the queue is a default one, and fair whether it is that of Config.FairNamespaces.
		want, fair bool
	}{
		{"default", controller.Options{}, true, false},
		{"without priorities", controller.Options{UsePriorityQueue: new(false)}, true, false},
		{"own limiter", controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute),
		}, true, false},
		{"own queue", controller.Options{NewQueue: func(
			_ string, limiter workqueue.TypedRateLimiter[reconcile.Request],
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return workqueue.NewTypedRateLimitingQueue(limiter)
		}}, false, false},
		{"namespaces in turns", controller.Options{NewQueue: fairqueue.New}, true, true},
	} {
		tt.options.Reconciler = never
		c, ok := ControllerOf(built(t, tt.options))
		if !ok {
			t.Fatalf("%s: not recognized as a controller", tt.name)
		}
		if got, fair := c.HasDefaultQueue(), c.HasFairQueue(); got != tt.want || fair != tt.fair {
			t.Errorf("%s: got %t, fair %t, want %t, fair %t", tt.name, got, fair, tt.want, tt.fair)
		}
	}
}

func TestControllerOf_OtherRunnables(t *testing.T) {
	m := &offline.Manager{Cluster: offline.Cluster{Scheme: clientgoscheme.Scheme}}
	_, err := controller.NewTyped("strings", m, controller.TypedOptions[string]{
		Reconciler: reconcile.TypedFunc[string](func(context.Context, string) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, runnable := range []manager.Runnable{
		m.Runnables()[0], manager.RunnableFunc(func(context.Context) error { return nil }), &offline.Cluster{}, nil,
	} {
		if _, ok := ControllerOf(runnable); ok {
			t.Errorf("%T is taken for a controller of requests", runnable)
		}
	}
}
