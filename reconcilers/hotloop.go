// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"trueup.dev/internal/empty"
	"trueup.dev/internal/guard"
	"trueup.dev/internal/hotloop"
	"trueup.dev/internal/step"
)

var (
	hotLoops = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_hot_loops_total",
		Help: "Number of detected hot loops: the controller reconciled a resource repeatedly because of its own " +
			"previous reconcile.",
	}, []string{"reconciler"})

	hotLoopWaits = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_hot_loop_waits_total",
		Help: "Number of requests that were delayed because the resource is in a hot loop.",
	}, []string{"reconciler"})
)

func init() {
	metrics.Registry.MustRegister(hotLoops, hotLoopWaits)
}

// enterLoop returns the delay of a request for a resource in a hot loop, and whether the request is inspected.
func (r root) enterLoop(ctx context.Context, requests *requests, req Request) (wait time.Duration, inspect bool) {
	if requests.loops.Idle() {
		return 0, false
	}
	entry := requests.loops.Enter(req, func(look hotloop.Look) bool {
		return r.changedByOthers(ctx, req, requests.step.of(r).resource(req), look)
	})
	if entry.Wait > 0 {
		hotLoopWaits.WithLabelValues(r.name).Inc()
	}
	return entry.Wait, entry.Inspect
}

// changedByOthers reports whether another client has changed the resource or an object that its last reconciles read.
// Objects that the reconciles wrote do not count: two clients that revert each other's changes are also a hot loop.
func (r root) changedByOthers(ctx context.Context, req Request, resource guard.Object, look hotloop.Look) bool {
	current := empty.Like(r.resourceType)
	err := r.config.Get(ctx, req.NamespacedName, current)
	if client.IgnoreNotFound(err) != nil {
		return true // the request returns the error
	}
	if exists := err == nil; exists != look.Existed && !look.Ours(resource) {
		return true
	}
	return current.GetGeneration() > look.Generation || look.Versions.Changed(ctx, look.Ours)
}

// leaveLoop detects a hot loop after a request of a controller and reports it. A failed request is not part of a hot
// loop, because failures have their own back-off.
func (r *request) leaveLoop(ctx context.Context, root root, result Result, err error) {
	if !r.findsLoops || err != nil {
		return
	}
	loop := r.requests.loops.Leave(r.scope.request, hotloop.Reconcile{
		Started: r.started, Generation: r.generation, RequeueAfter: result.RequeueAfter, Journal: &r.journal,
		Resource: r.requests.step.of(root).resource(r.scope.request), Exists: r.resource != nil,
	})
	if loop == nil {
		return
	}
	hotLoops.WithLabelValues(root.name).Inc()
	repeats := repetitions(r.journal.Changes())
	if path, after := r.requeues.shortest(); after > 0 {
		repeats = append(repeats, fmt.Sprintf("%s returns RequeueAfter %s", path, after))
	}
	within := loop.Within.Round(time.Millisecond).String()
	logr.FromContextOrDiscard(ctx).Info("hot loop: each reconcile triggers the next one, further reconciles are delayed",
		"reconciles", loop.Reconciles, "within", within, "repeats", repeats)
	if r.resource != nil && root.config.Recorder != nil {
		text := fmt.Sprintf("Reconciled %d times in %s, each reconcile triggered the next one; "+
			"further reconciles are delayed. %s", loop.Reconciles, within, strings.Join(repeats, "; "))
		root.config.Recorder.Eventf(r.resource, corev1.EventTypeWarning, "HotLoop", "%s", truncate(text))
	}
}

// repetitions describes the writes of a request: the step, the object and the changed fields. It contains no values,
// because values may be secret.
func repetitions(changes []guard.Change) []string {
	repeats := []string{}
	for _, change := range changes {
		text := fmt.Sprintf("%s %s %s %s", change.Step, change.Verb, change.Kind.Kind, change.Key)
		if change.Before != nil && change.After != nil {
			paths := changedPaths(comparable(change.Before), comparable(change.After))
			if len(paths) == 0 {
				paths = []string{"no field"}
			}
			text += ": " + strings.Join(paths, ", ")
		}
		if !slices.Contains(repeats, text) {
			repeats = append(repeats, text)
		}
	}
	return repeats
}

// comparable clears the fields that every write changes.
func comparable(obj client.Object) client.Object {
	obj.SetResourceVersion("")
	obj.SetGeneration(0)
	obj.SetManagedFields(nil)
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj
}

// requeues is an observer that records the step with the shortest requeue.
type requeues struct {
	mu    sync.Mutex
	path  string
	after time.Duration
}

var _ step.Observer = (*requeues)(nil)

func (r *requeues) StepStarted(ctx context.Context, _ step.Started) context.Context { return ctx }

func (r *requeues) StepFinished(_ context.Context, finished step.Finished) {
	after := finished.Result.RequeueAfter
	if after <= 0 || after >= hotloop.Short {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Enclosing steps return the same result. Keep the innermost step, which finishes first.
	if r.after == 0 || after < r.after {
		r.path, r.after = strings.Join(finished.Path, "."), after
	}
}

func (r *requeues) shortest() (path string, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.path, r.after
}
