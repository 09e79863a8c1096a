// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"time"

	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// scheduleKind is a kind with handlers, which a schedule runs.
type scheduleKind struct {
	name  string
	proto subject
	// handlers are the finalizers of the handlers, "" for a handler without one.
	handlers []string
	// inProgress is the in-progress finalizer of the first handler.
	inProgress string
	// former is an alias of the finalizer of the first handler. Some objects are created with it.
	former string
	// requests reports whether the handlers are request reconcilers.
	requests bool
}

const (
	finalizerA          = "schedule.trueup.dev/a"
	finalizerB          = "schedule.trueup.dev/b"
	inProgressFinalizer = "schedule.trueup.dev/in-progress"
	formerFinalizer     = "schedule.trueup.dev/former"
	foreignFinalizer    = "schedule.trueup.dev/of-another-controller"
)

var scheduleKinds = []scheduleKind{
	{name: "plain watcher", proto: &bare{}, handlers: []string{""}},
	{name: "plain reconciler", proto: &bare{}, handlers: []string{""}, requests: true},
	{name: "opinionated watcher with observedGeneration", proto: &marked{}, handlers: []string{finalizerA}},
	{name: "opinionated watcher without observedGeneration", proto: &bare{}, handlers: []string{finalizerA}},
	{
		name: "opinionated watcher with an in-progress finalizer", proto: &bare{}, handlers: []string{finalizerA},
		inProgress: inProgressFinalizer,
	},
	{
		name: "opinionated watcher with a former finalizer", proto: &bare{}, handlers: []string{finalizerA},
		former: formerFinalizer,
	},
	{name: "opinionated reconciler", proto: &marked{}, handlers: []string{finalizerA}, requests: true},
	{name: "fan-out of an opinionated and a plain watcher", proto: &bare{}, handlers: []string{finalizerA, ""}},
	{name: "fan-out of two opinionated watchers", proto: &marked{}, handlers: []string{finalizerA, finalizerB}},
}

// ours returns the finalizers of a handler.
func (k scheduleKind) ours(handler int) []string {
	switch {
	case k.handlers[handler] == "":
		return nil
	case k.inProgress != "" && handler == 0:
		return []string{k.handlers[handler], k.inProgress}
	case k.former != "" && handler == 0:
		return []string{k.handlers[handler], k.former}
	}
	return k.handlers[handler : handler+1]
}

// schedulePolicy is a deterministic retry policy. Without a function the rate limiter retries.
type schedulePolicy struct {
	name   string
	policy RetryPolicy
}

var schedulePolicies = []schedulePolicy{
	{"rate limiter", nil},
	{"exponential policy", BackoffPolicy{Initial: time.Second, Max: 8 * time.Second, Jitter: -1}.Policy()},
	{"exhausting policy", BackoffPolicy{Initial: time.Second, Jitter: -1, MaxAttempts: 1}.Policy()},
}

// build makes the handlers of a process.
func (w *scheduleWorld) build() (
	handlers []reconcilers.SubReconciler[resource.Object], edges []*WithEdge[resource.Object],
) {
	for i, finalizer := range w.kind.handlers {
		h := &scheduleHandler{world: w, process: w.process, number: i}
		edge := WatcherReconciler[resource.Object](h)
		if w.kind.requests {
			edge = AsSubReconciler[resource.Object](&TypedReconciler[resource.Object]{ReconcileFunc: h.reconcile})
		}
		edge.Resync = w.resync
		if w.policy.policy != nil {
			edge.RetryPolicy = h.retry
		}
		edges = append(edges, edge)
		if finalizer == "" {
			handlers = append(handlers, edge)
			continue
		}
		o := opinionated(finalizer, edge)
		if i == 0 {
			o.InProgressFinalizer = w.kind.inProgress
			if w.kind.former != "" {
				o.Aliases = []string{w.kind.former}
			}
		}
		handlers = append(handlers, o)
	}
	return handlers, edges
}
