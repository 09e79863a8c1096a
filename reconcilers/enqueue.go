// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// EnqueueTracked returns an event handler that enqueues every resource that tracks the object of the event. Watch each
// tracked kind with it, in the Setup function of the reconciler that tracks:
//
//	bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
//
// It must be called with the context given to Setup, and panics when that holds no config.
//
// Given to a watch as it is, the handler tells the root reconciler which kinds are watched, see [Config.TrackAndGet].
// Part of another handler, it works as well.
func EnqueueTracked(ctx context.Context) handler.EventHandler {
	config := RetrieveConfigOrDie(ctx)

	tracked := &trackedHandler{handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []Request {
		observers, err := config.Tracker.GetObservers(obj)
		if err != nil {
			logUnlessQuiet(ctx, err, "unable to get tracked requests")
			return nil
		}
		requests := make([]Request, len(observers))
		for i := range observers {
			requests[i].NamespacedName = observers[i]
		}
		return requests
	})}
	scopeFrom(ctx).watched.issue(tracked)
	return tracked
}

// trackedHandler is a handler of EnqueueTracked. Its type is how it is known in a watch.
type trackedHandler struct{ handler.EventHandler }
