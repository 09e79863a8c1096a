// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"fmt"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/graph"
	"trueup.dev/observe"
)

// The listener prints why each reconcile of a manager runs.
func ExampleOf() {
	causes := observe.Func(func(_ context.Context, event observe.Event) {
		if started, ok := event.(*observe.ReconcileStarted); ok {
			for _, cause := range started.Run.Causes {
				fmt.Println(started.Run.Object, cause.Type, cause.Kind.Kind, cause.Object, cause.Parts(), cause.By())
			}
		}
	})
	setUp := func(mgr manager.Manager) {
		observe.Of(mgr).Add(causes)
	}
	_ = setUp
}

// The reconciler of a running controller describes itself.
func ExampleHub_Reconciler() {
	printTree := func(mgr manager.Manager) {
		fmt.Print(graph.Of(observe.Of(mgr).Reconciler("database")).Text())
	}
	_ = printTree
}

// restarter is a reconciler that does not use this module.
type restarter struct{ client.Client }

func (*restarter) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

// A controller that is built with controller-runtime alone.
func ExampleController() {
	setUp := func(mgr manager.Manager) error {
		return observe.Controller(ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{})).
			Complete(&restarter{Client: observe.Client(mgr)})
	}
	_ = setUp
}

// stepCounter counts the steps of each reconcile.
type stepCounter struct{}

func (c *stepCounter) Observe(ctx context.Context, event observe.Event) context.Context {
	switch e := event.(type) {
	case *observe.ReconcileStarted:
		e.Run.Attach(c, new(atomic.Int64)) // steps may run in several goroutines
	case *observe.StepStarted:
		if steps, ok := e.Run.Attached(c).(*atomic.Int64); ok { // not if the run started before the listener was added
			steps.Add(1)
		}
	case *observe.ReconcileFinished:
		if steps, ok := e.Run.Attached(c).(*atomic.Int64); ok {
			fmt.Println(e.Run.Object, "took", steps.Load(), "steps")
		}
	}
	return ctx
}

// A listener keeps what it needs of a run with the run.
func ExampleRun_Attach() {
	counter := &stepCounter{}
	run := &observe.Run{Object: types.NamespacedName{Namespace: "default", Name: "db"}}
	for _, event := range []observe.Event{
		&observe.ReconcileStarted{Run: run},
		&observe.StepStarted{Run: run, Path: []string{"Database"}},
		&observe.StepStarted{Run: run, Path: []string{"Database", "Child"}},
		&observe.ReconcileFinished{Run: run},
	} {
		counter.Observe(context.Background(), event)
	}
	// Output: default/db took 2 steps
}
