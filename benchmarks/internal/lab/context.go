// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// calledByController returns a context as a controller gives it to its reconciler, until the returned function is
// called: with a logger, and with the id of a reconcile. That id is how a reconciler can know that it is not a test
// that calls it, and nobody but a controller can make one.
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
