// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// calledByController returns a context as a controller passes it to its reconciler, with a logger and the ID of a
// reconcile. It ends when the returned function is called. Reconcilers distinguish controllers from tests by this ID,
// which only a controller can create.
func (t *Trial) calledByController(ctx context.Context) (context.Context, context.CancelFunc, error) {
	given := make(chan context.Context, 1)
	c, err := controller.NewUnmanaged("lab", controller.Options{
		SkipNameValidation: new(true),
		Logger:             t.controller.log,
		Reconciler: reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			given <- ctx
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		return nil, nil, err
	}
	if err := c.Watch(source.Func(func(
		_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
	) error {
		queue.Add(reconcile.Request{})
		return nil
	})); err != nil {
		return nil, nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() { failed <- c.Start(ctx) }()
	select {
	case ctx := <-given:
		return ctx, stop, nil
	case err := <-failed:
		stop()
		return nil, nil, err
	}
}
