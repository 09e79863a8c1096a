// SPDX-License-Identifier: Apache-2.0

// Package calledby provides the context with which a controller calls its reconciler.
package calledby

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Controller returns a context with the values that a controller passes to its reconciler, taken from a controller that
// runs for a moment. Some reconcilers behave differently below other contexts. Controller returns the same context each
// time, and the context is never done. The first call must not be in a bubble of testing/synctest.
var Controller = sync.OnceValue(func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	calls := make(chan context.Context, 1)
	c, err := controller.NewUnmanaged("calledby", controller.Options{
		SkipNameValidation: new(true),
		Reconciler: reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			calls <- context.WithoutCancel(ctx)
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		return context.Background()
	}
	err = c.Watch(
		source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(reconcile.Request{})
			return nil
		}),
	)
	if err != nil {
		return context.Background()
	}
	go func() { _ = c.Start(ctx) }()
	return <-calls
})
