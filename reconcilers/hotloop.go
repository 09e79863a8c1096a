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

	"trueup.dev/internal/guard"
	"trueup.dev/internal/hotloop"
	"trueup.dev/internal/step"
)

var (
	hotLoops = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_hot_loops_total",
		Help: "Resources that the controller reconciled again and again because of what its own last reconcile did.",
	}, []string{"reconciler"})

	hotLoopWaits = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_hot_loop_waits_total",
		Help: "Reconciles put off because the resource is in a hot loop.",
	}, []string{"reconciler"})
)

func init() {
	metrics.Registry.MustRegister(hotLoops, hotLoopWaits)
}

// enterLoop returns for how long a request of a resource in a hot loop is put off, and whether the request is to be
// inspected.
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

// changedByOthers reports whether another client has changed the resource or what its last reconciles have read. What
// they write themselves does not count: two clients that undo each other's changes are a hot loop, too.
func (r root) changedByOthers(ctx context.Context, req Request, resource guard.Object, look hotloop.Look) bool {
	current := blankLike(r.resourceType)
	err := r.config.Get(ctx, req.NamespacedName, current)
	if client.IgnoreNotFound(err) != nil {
		return true // the request will return the error
	}
	if exists := err == nil; exists != look.Existed && !look.Ours(resource) {
		return true
	}
	return current.GetGeneration() > look.Generation || look.Versions.Changed(ctx, look.Ours)
}

// leaveLoop watches out for hot loops after a request of a controller, and reports one that it finds. A failed request
// is no part of one, since failures have a back-off of their own.
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
		repeats = append(repeats, fmt.Sprintf("%s asks for RequeueAfter %s", path, after))
	}
	within := loop.Within.Round(time.Millisecond).String()
	logr.FromContextOrDiscard(ctx).Info("hot loop: each reconcile leads to the next one, they are slowed down",
		"reconciles", loop.Reconciles, "within", within, "repeats", repeats)
	if r.resource != nil && root.config.Recorder != nil {
		text := fmt.Sprintf("Reconciled %d times in %s, each because of the one before; slowed down. %s",
			loop.Reconciles, within, strings.Join(repeats, "; "))
		root.config.Recorder.Eventf(r.resource, corev1.EventTypeWarning, "HotLoop", "%s", truncate(text))
	}
}

// repetitions describes the writes of a request: the step, the object, and which fields have changed. No values are
// named, they may be secret.
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

// comparable takes from an object what changes with each write.
func comparable(obj client.Object) client.Object {
	obj.SetResourceVersion("")
	obj.SetGeneration(0)
	obj.SetManagedFields(nil)
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj
}

// requeues is an observer of a request that remembers which step asks to be called again at once.
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
	// The steps around the one that asks return the same.
	if r.after == 0 || after < r.after {
		r.path, r.after = strings.Join(finished.Path, "."), after
	}
}

func (r *requeues) shortest() (path string, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.path, r.after
}
