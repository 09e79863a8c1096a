// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationReconcileAt is the annotation that requests a reconcile of a resource. Any change of its value makes the
// next reconcile run everything that [Retry], [RateLimit] or [Periodic] would defer. The value is usually the current
// time:
//
//	kubectl annotate --overwrite website blog trueup.dev/reconcile-at="$(date --rfc-3339=ns)"
//
// The value is remembered in memory, so handling it writes nothing. A controller with a predicate on generations does
// not receive the change: combine the predicate with controller-runtime's AnnotationChangedPredicate.
const AnnotationReconcileAt = "trueup.dev/reconcile-at"

// occasion is what entitles a step to run at once, without regard to what was deferred: a new generation, the start of
// the deletion or of the removal of a step of [Steps], or a request by annotation.
type occasion struct {
	generation  int64
	deleting    bool
	requestedAt string
}

func occasionOf(ctx context.Context, resource client.Object) occasion {
	return occasion{
		generation: resource.GetGeneration(), deleting: MustRemove(ctx, resource),
		requestedAt: resource.GetAnnotations()[AnnotationReconcileAt],
	}
}

// deferredStep is the error of a step that is deferred. The step that follows must not run, unless the user asks.
type deferredStep struct {
	text string
	// why is a text for conditions: it does not change with the time.
	why   string
	cause error
}

func (e *deferredStep) Error() string   { return e.text }
func (e *deferredStep) Unwrap() []error { return append([]error{ErrRetryAfter}, nonNil(e.cause)...) }

func nonNil(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// stateTTL is how long the state of a step is kept after the last reconcile of its resource. It is longer than the
// default sync period, which reconciles each resource that exists.
const stateTTL = 24 * time.Hour
