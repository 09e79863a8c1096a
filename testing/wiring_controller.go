// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/reconcilers"
)

// recordedController is a controller without workers that do anything.
type recordedController struct {
	manager.Runnable

	options ControllerOptions
	queue   *requestQueue
	// ready is closed when everything is watched, and name is known from then on.
	ready chan struct{}
	name  string
}

// recordController returns nil for runnables that are no controllers.
func recordController(runnable manager.Runnable) (*recordedController, error) {
	c := &recordedController{
		Runnable: runnable, queue: &requestQueue{down: make(chan struct{})}, ready: make(chan struct{}),
	}
	c.queue.waiting = sync.OnceFunc(func() { close(c.ready) })
	replaced := replaceQueue(runnable, func(
		name string, _ workqueue.TypedRateLimiter[reconcilers.Request],
	) workqueue.TypedRateLimitingInterface[reconcilers.Request] {
		c.name = name
		return c.queue
	})
	if replaced {
		c.options = controllerOptions(runnable)
		return c, nil
	}
	if _, ok := runnable.(interface{ GetLogger() logr.Logger }); ok {
		return nil, fmt.Errorf(
			"wiring of %T cannot be recorded: it is not a controller of requests as controller-runtime builds them", runnable,
		)
	}
	return nil, nil //nolint:nilnil // there is neither a controller nor a problem
}

// run starts the controller, calls do once everything is watched, and stops it.
func (c *recordedController) run(ctx context.Context, do func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()

	select {
	case <-c.ready:
	case <-ctx.Done():
	case err := <-ended:
		if ctx.Err() == nil {
			return fmt.Errorf("unable to start a controller: %w", err)
		}
		ended <- err
	}
	// A controller that is stopped early has its workers look at the queue, too.
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
