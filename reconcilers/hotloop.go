// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/hotloop"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/observe"
)

// enterLoop returns what hot loops mean for a request: its delay, and whether it is inspected.
func (r root) enterLoop(ctx context.Context, requests *requests, req Request) hotloop.Entry {
	if requests.loops.Idle() {
		return hotloop.Entry{}
	}
	entry := requests.loops.Enter(req, func(look hotloop.Look) bool {
		return r.changedByOthers(ctx, req, requests.step.of(r).resource(req), look)
	})
	if entry.Wait > 0 {
		r.reportDeferred(ctx, observe.DeferLoop)
		requests.looping.delayed(r.config, req)
	}
	return entry
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
	return !look.AnyGeneration && current.GetGeneration() > look.Generation || look.Versions.Changed(ctx, look.Ours)
}

// leaveLoop detects a hot loop after a request of a controller and reports it. A failed request is not part of a hot
// loop, because failures have their own back-off.
func (r *request) leaveLoop(ctx context.Context, root root, result Result, err error) {
	if !r.findsLoops {
		return
	}
	r.compareWrites(ctx, root)
	if err != nil {
		return
	}
	loop := r.requests.loops.Leave(r.scope.request, r.reconciled(root, result))
	if loop == nil {
		return
	}
	repeats := r.requests.loops.Repetitions(r.scope.request, &r.journal, r.started)
	if path, after := r.requeues.shortest(); after > 0 {
		repeats = append(repeats, fmt.Sprintf("%s returns RequeueAfter %s", path, after))
	}
	root.reportLoop(ctx, observe.LoopFound{
		Cause: observe.LoopSelf, Reconciles: loop.Reconciles, Within: loop.Within, Repeats: repeats,
	})
	within := loop.Within.Round(time.Millisecond).String()
	logr.FromContextOrDiscard(ctx).Info("hot loop: each reconcile triggers the next one, further reconciles are delayed",
		"reconciles", loop.Reconciles, "within", within, "repeats", repeats)
	r.announceLoop(root, reasonHotLoop, fmt.Sprintf("Reconciled %d times in %s, each reconcile triggered the next one; "+
		"further reconciles are delayed. %s", loop.Reconciles, within, strings.Join(repeats, "; ")))
}

// announceLoop records an event about a hot loop on the resource, and its condition if the user asks for one.
func (r *request) announceLoop(root root, reason, text string) {
	text = truncate(text)
	r.requests.looping.set(root.config, r.scope.request, reason, text)
	if r.resource != nil {
		root.config.recorder().Event(r.resource, corev1.EventTypeWarning, reason, text)
	}
}

// reconciled describes the request for the detection of hot loops.
func (r *request) reconciled(root root, result Result) hotloop.Reconcile {
	return hotloop.Reconcile{
		Started: r.started, Generation: r.generation, RequeueAfter: result.RequeueAfter, Journal: &r.journal,
		Resource: r.requests.step.of(root).resource(r.scope.request), Exists: r.resource != nil,
	}
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
