// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"trueup.dev/observe"
)

// EnqueueTracked returns an event handler that enqueues every resource that tracks the object of the event. Watch each
// tracked kind with it, in the Setup function of the reconciler that tracks the kind:
//
//	bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
//
// Call it with the context that was passed to Setup. It panics if the context has no config.
//
// If the handler is passed directly to a watch, the root reconciler knows that the kind is watched, see
// [Config.TrackAndGet]. The handler can also be part of another handler.
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
	scopeFrom(ctx).watched.addHandler(tracked)
	return tracked
}

// trackedHandler is the handler that EnqueueTracked returns. Its type identifies it in a watch.
type trackedHandler struct{ handler.EventHandler }

// CauseType returns the type of the causes of what the handler enqueues.
func (*trackedHandler) CauseType() observe.CauseType { return observe.CauseTracked }
