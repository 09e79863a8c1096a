// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"trueup.dev/duck"
	"trueup.dev/internal/engine/observation"
	"trueup.dev/internal/engine/step"
)

// Reconcile reconciles the resource that the request names.
//
// In a controller, it returns the requeue that reconcilers request and sets the observedGeneration of conditions.
//
// In a direct call, for example in a test, it does not change conditions, and it returns an empty result after it has
// written the status. Tests of earlier versions expect the empty result, because the watch event of the write triggers
// the next request. A controller does not depend on this event, because a predicate may filter it out.
func (r *ResourceReconciler[T]) Reconcile(ctx context.Context, req Request) (Result, error) {
	return r.reconcile(ctx, req, controller.ReconcileIDFromContext(ctx) != "")
}

func (r *ResourceReconciler[T]) reconcile(ctx context.Context, req Request, byController bool) (Result, error) {
	r.init()
	root := r.root()
	if byController {
		r.watched.warnNotSetUp(ctx, root)
	}
	ctx, this, wait := root.beginRequest(ctx, &r.requests, r.scope(req), byController)
	if wait > 0 {
		return Result{RequeueAfter: wait}, nil
	}
	return this.run(ctx, root, func(ctx context.Context, _ client.Object) (Result, error) {
		return r.request(ctx, req, this)
	})
}

// hasOwnTime reports whether a quiet error uses the RequeueAfter of its result.
func hasOwnTime(err error) bool {
	return errors.Is(err, ErrHaltSubReconcilers) || errors.Is(err, ErrRetryAfter)
}

func (r *ResourceReconciler[T]) request(ctx context.Context, req Request, this *request) (Result, error) {
	if r.SkipRequest != nil && r.SkipRequest(ctx, req) {
		return Result{}, nil
	}
	around := hooks{before: r.BeforeReconcile, after: r.AfterReconcile}
	return around.call(ctx, req, func(ctx context.Context) (Result, error) {
		return r.fetchAndReconcile(ctx, req, this)
	})
}

func (r *ResourceReconciler[T]) fetchAndReconcile(ctx context.Context, req Request, this *request) (Result, error) {
	resource, original, err := r.fetch(ctx, req.NamespacedName)
	if err != nil {
		if apierrs.IsNotFound(err) {
			return r.absent(ctx, req)
		}
		logUnlessQuiet(ctx, err, "unable to fetch resource")
		return Result{}, err
	}
	noteUID(ctx, resource.GetUID())
	this.fetched(ctx, resource)
	if !r.SkipStatusUpdate {
		this.stored.await(ctx)
	}
	if err := applyDefaults(ctx, resource); err != nil {
		return Result{}, err
	}
	if r.SkipResource != nil && r.SkipResource(ctx, resource) {
		return Result{}, nil
	}

	var observation *observation.Observation
	if this.byController {
		ctx, observation = r.status.withGeneration(ctx, resource)
	}
	r.status.initializeConditions(ctx, resource)
	before := r.unwritten.before(ctx, resource, this.byController)
	result, err := r.reconcileResource(ctx, resource)
	r.unwritten.check(ctx, before, resource)
	this.completed = err == nil
	if r.SkipStatusUpdate {
		return result, err
	}
	if this.byController {
		r.status.mendConditions(resource)
	}
	r.status.setLoopCondition(resource, r.Config, &r.requests.looping, req)
	r.status.observeConditions(resource, original, observation, err == nil && !this.waits.leftOut.Load())
	r.status.keepTransitionTimes(resource, original)
	if !r.mustWriteStatus(ctx, resource, original, err) {
		if !errors.Is(err, ErrSkipStatusUpdate) {
			this.stored.confirm()
		}
		return result, err
	}
	result, err = r.writeStatus(ctx, this, resource, original, result, err)
	if !this.byController {
		result = Result{}
	}
	return result, err
}

// absent handles a resource that does not exist.
func (r *ResourceReconciler[T]) absent(ctx context.Context, req Request) (Result, error) {
	r.Config.forget(r.Type, req)
	if r.ReconcileAbsent != nil {
		return r.ReconcileAbsent(ctx, req)
	}
	return Result{}, nil
}

// fetch returns the resource and the original to compare it with, see asFetched. The caller must not change the
// original.
func (r *ResourceReconciler[T]) fetch(ctx context.Context, key client.ObjectKey) (resource, original T, err error) {
	resource = r.Type.DeepCopyObject().(T)
	if r.cached.Empty() {
		err = r.Config.Get(ctx, key, resource)
		if err != nil {
			return resource, original, err
		}
		return resource, r.asFetched(resource), nil
	}
	// Objects in the cache are never changed, so the original need not be a copy.
	original = resource
	if err := r.Config.Get(ctx, key, original, client.UnsafeDisableDeepCopy); err != nil {
		return resource, original, err
	}
	resource = original.DeepCopyObject().(T)
	nameKind(resource, r.cached)
	return resource, original, nil
}

// asFetched returns a copy of the parts of a resource that are needed to detect a changed status and to write it.
func (r *ResourceReconciler[T]) asFetched(resource T) T {
	if r.SkipStatusUpdate {
		return resource
	}
	if r.patchesStatus(resource) {
		return resource.DeepCopyObject().(T)
	}
	return r.status.snapshot(resource).(T)
}

// reconcileResource runs Reconciler.
func (r *ResourceReconciler[T]) reconcileResource(ctx context.Context, resource T) (Result, error) {
	if resource.GetDeletionTimestamp() != nil && len(resource.GetFinalizers()) == 0 {
		// No finalizer is left, so nothing needs to be cleaned up.
		return Result{}, nil
	}
	result, err := r.Reconciler.Reconcile(ctx, resource)
	if err == nil || errors.Is(err, ErrHaltSubReconcilers) {
		r.status.observeGeneration(resource)
	}
	return result, err
}

func (r *ResourceReconciler[T]) mustWriteStatus(ctx context.Context, resource, original T, err error) bool {
	if resource.GetDeletionTimestamp() != nil && !r.SyncStatusDuringFinalization &&
		!scopeFrom(ctx).stored.storesDeleting(resource) {
		return false
	}
	return !errors.Is(err, ErrSkipStatusUpdate) && !r.status.equal(resource, original) &&
		!r.admitted.isStored(ctx, r.Config, r.status, resource, original)
}

// writeStatus writes the status. It never hides a failure: if reconcilers returned an error that is not quiet, it
// returns the error although the status was written. The request is then retried with back-off, logged and counted.
func (r *ResourceReconciler[T]) writeStatus(
	ctx context.Context, this *request, resource, original T, result Result, reconcileErr error,
) (Result, error) {
	log := logr.FromContextOrDiscard(ctx)
	write := r.statusWriter(resource)
	if log.Enabled() {
		log.Info(write.doing, "diff", changes(log, r.status.of(original), r.status.of(resource)))
	}
	if isQuiet(reconcileErr) {
		if !hasOwnTime(reconcileErr) {
			result = withPriority(backOff, result)
		}
		reconcileErr = nil
	}

	requested := r.status.snapshot(resource)
	err := write.write(ctx, resource, original)
	switch {
	case err == nil:
		scopeFrom(ctx).stored.confirm()
		r.admitted.learn(r.status, requested, resource)
		if r.StatusEvents || !this.byController {
			r.Config.recorder().Event(resource, corev1.EventTypeNormal, write.succeeded, write.done)
		}
		return result, reconcileErr
	case apierrs.IsConflict(err) && !write.patch:
		// Another client wrote first. Its watch event triggers the next request, but a predicate may filter the event
		// out.
		log.Info("unable to update status, the resource has changed", "reason", err.Error())
		return withPriority(backOff, result), reconcileErr
	case apierrs.IsNotFound(err) && resource.GetDeletionTimestamp() != nil && len(resource.GetFinalizers()) == 0:
		// The resource was deleted when its last finalizer was removed.
		return result, reconcileErr
	case apierrs.IsNotFound(err) && this.byController:
		if err = r.explainNotFound(ctx, resource, err); err == nil {
			return result, reconcileErr // the resource was deleted during the request
		}
	case this.byController:
		err = r.writeRest(ctx, write, resource, original, err)
	}
	if reconcileErr == nil {
		reconcileErr = err
	} else {
		reconcileErr = errors.Join(err, reconcileErr)
	}
	logUnlessQuiet(ctx, err, write.unable)
	if !isShutdown(ctx) {
		r.Config.recorder().Eventf(resource, corev1.EventTypeWarning, write.failed, write.failure, err)
		step.Recorded(ctx, err)
	}
	return Result{}, reconcileErr
}

// statusWrite is a way to write a status, with its log messages and events.
type statusWrite[T client.Object] struct {
	patch           bool
	doing, unable   string
	succeeded, done string
	failed, failure string
	write           func(ctx context.Context, resource, original T) error
}

// writeRest writes a status without what the API server refused of it, and returns the refusal with the names of these
// fields.
func (r *ResourceReconciler[T]) writeRest(
	ctx context.Context, write statusWrite[T], resource, original T, refusal error,
) error {
	if !apierrs.IsInvalid(refusal) && !isTooLarge(refusal) {
		return refusal
	}
	reduced, fields, err := r.status.without(refusal, resource, original)
	if err != nil || len(fields) == 0 {
		return errors.Join(refusal, err)
	}
	if err := write.write(ctx, reduced.(T), original); err != nil {
		return errors.Join(refusal, err)
	}
	return fmt.Errorf("without %s, the rest was written: %w", strings.Join(fields, ", "), refusal)
}

// patchesStatus reports whether the status is patched. This applies to ducks: an update would remove the fields that
// the duck type does not have.
func (r *ResourceReconciler[T]) patchesStatus(resource T) bool {
	_, isUnstructured := any(resource).(*unstructured.Unstructured)
	return !isUnstructured && duck.IsDuck(resource, r.Config.Scheme())
}

func (r *ResourceReconciler[T]) statusWriter(resource T) statusWrite[T] {
	if !r.patchesStatus(resource) {
		return statusWrite[T]{
			doing: "updating status", unable: "unable to update status",
			succeeded: "StatusUpdated", done: "Updated status",
			failed: "StatusUpdateFailed", failure: "Failed to update status: %v",
			write: func(ctx context.Context, resource, _ T) error {
				return r.Config.Status().Update(ctx, resource)
			},
		}
	}
	return statusWrite[T]{
		patch: true,
		doing: "patching status", unable: "unable to patch status",
		succeeded: "StatusPatched", done: "Patched status",
		failed: "StatusPatchFailed", failure: "Failed to patch status: %v",
		write: func(ctx context.Context, resource, original T) error {
			return r.Config.Status().Patch(ctx, resource, client.MergeFrom(original))
		},
	}
}
