// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/internal/ctrlfields"
	"trueup.dev/reconcilers"
)

// observedController is a controller whose workers get no requests.
type observedController struct {
	ctrlfields.Controller

	runnable manager.Runnable
	queue    *requestQueue
	// ready is closed when the sources of the controller have started and synced.
	ready chan struct{}
}

// observeController returns nil for runnables other than controllers.
func observeController(runnable manager.Runnable) (*observedController, error) {
	controller, ok := ctrlfields.ControllerOf(runnable)
	if !ok {
		if _, ok := runnable.(interface{ GetLogger() logr.Logger }); ok {
			return nil, fmt.Errorf(
				"wiring of %T cannot be recorded: it is not a controller of requests as controller-runtime builds them", runnable,
			)
		}
		return nil, nil //nolint:nilnil // neither a controller nor a problem
	}
	c := &observedController{
		Controller: controller, runnable: runnable, queue: &requestQueue{down: make(chan struct{})},
		ready: make(chan struct{}),
	}
	c.queue.waiting = sync.OnceFunc(func() { close(c.ready) })
	c.SetNewQueue(func(
		string, workqueue.TypedRateLimiter[reconcilers.Request],
	) workqueue.TypedRateLimitingInterface[reconcilers.Request] {
		return c.queue
	})
	return c, nil
}

// run starts the controller, calls do when the sources have synced, and stops the controller.
func (c *observedController) run(ctx context.Context, do func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- c.runnable.Start(ctx) }()

	select {
	case <-c.ready:
	case <-ctx.Done():
	case err := <-ended:
		if ctx.Err() == nil {
			return fmt.Errorf("unable to start a controller: %w", err)
		}
		ended <- err
	}
	// The workers of a controller that is stopped early use the queue, too.
	if ctx.Err() != nil {
		return errors.Join(
			fmt.Errorf("a controller takes too long to start, one of its sources seems to block: %w", context.Cause(ctx)),
			<-ended,
		)
	}
	do()
	stop()
	return <-ended
}
