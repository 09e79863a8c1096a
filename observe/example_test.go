// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
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
