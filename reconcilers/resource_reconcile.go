// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/duck"
	"trueup.dev/internal/step"
	"trueup.dev/stash"
	rtime "trueup.dev/time"
)

// Reconcile reconciles the resource that the request names.
//
// It reports an empty result once it has written the status, because that write triggers the next request. A manager is given more: see
// reconcileManaged.
func (r *ResourceReconciler[T]) Reconcile(ctx context.Context, req Request) (Result, error) {
	result, _, err := r.reconcile(ctx, req)
	return result, err
}

// reconcileManaged is what the manager calls. The event of the reconciler's own status write may be filtered out by a predicate, so here a
// requeue that reconcilers have asked for holds whether or not the status was written.
func (r *ResourceReconciler[T]) reconcileManaged(ctx context.Context, req Request) (Result, error) {
	result, swallowed, err := r.reconcile(ctx, req)
	return AggregateResults(result, swallowed), err
}

// reconcile returns the result, and the part of it that was swallowed by writing the status.
func (r *ResourceReconciler[T]) reconcile(ctx context.Context, req Request) (result, swallowed Result, err error) {
	r.init()
	ctx, logPanic := step.Root(ctx)
	defer logPanic()
	ctx = stash.WithContext(ctx)
	ctx = rtime.StashNow(ctx, time.Now())
	scope := r.scope(req)
	scope.additionalConfigs = scopeFrom(ctx).additionalConfigs
	ctx = scope.onto(ctx)

	node := step.Node{Name: r.Name, Values: []any{"resourceType", resourceTypeName(r.Config, r.Type)}}
	result, err = step.Run(ctx, node, r.Type, func(ctx context.Context, _ T) (Result, error) {
		result, lost, err := r.request(ctx, req)
		swallowed = lost
		return result, err
	})
	if isQuiet(err) {
		// A quiet error is retried with back-off like any other, but leaves no trace in logs and metrics.
		return Result{Requeue: true}, swallowed, nil //nolint:staticcheck // the only way to ask for back-off without an error
	}
	return result, swallowed, err
}

func (r *ResourceReconciler[T]) request(ctx context.Context, req Request) (result, swallowed Result, err error) {
	if r.SkipRequest != nil && r.SkipRequest(ctx, req) {
		return Result{}, Result{}, nil
	}
	before := Result{}
	if r.BeforeReconcile != nil {
		replaced, beforeResult, err := r.BeforeReconcile(ctx, req)
		if err != nil {
			return beforeResult, Result{}, err
		}
		if replaced != nil {
			ctx = replaced
		}
		before = beforeResult
	}
	result, swallowed, err = r.fetchAndReconcile(ctx, req)
	result = AggregateResults(before, result)
	if r.AfterReconcile != nil {
		result, err = r.AfterReconcile(ctx, req, result, err)
	}
	return result, swallowed, err
}

func (r *ResourceReconciler[T]) fetchAndReconcile(ctx context.Context, req Request) (result, swallowed Result, err error) {
	original := r.Type.DeepCopyObject().(T)
	if err := r.Config.Get(ctx, req.NamespacedName, original); err != nil {
		if apierrs.IsNotFound(err) {
			return Result{}, Result{}, nil
		}
		logUnlessQuiet(ctx, err, "unable to fetch resource")
		return Result{}, Result{}, err
	}
	resource := original.DeepCopyObject().(T)
	if err := applyDefaults(ctx, resource); err != nil {
		return Result{}, Result{}, err
	}
	if r.SkipResource != nil && r.SkipResource(ctx, resource) {
		return Result{}, Result{}, nil
	}

	r.status.initializeConditions(ctx, resource)
	result, err = r.reconcileResource(ctx, resource)
	if r.SkipStatusUpdate {
		return result, Result{}, err
	}
	r.status.keepTransitionTimes(resource, original)
	if !r.mustWriteStatus(resource, original, err) {
		return result, Result{}, err
	}
	return r.writeStatus(ctx, resource, original, result, err)
}

// reconcileResource runs the Reconciler.
func (r *ResourceReconciler[T]) reconcileResource(ctx context.Context, resource T) (Result, error) {
	if resource.GetDeletionTimestamp() != nil && len(resource.GetFinalizers()) == 0 {
		// Nothing is left to do for it, it is gone from the API server already.
		return Result{}, nil
	}
	result, err := r.Reconciler.Reconcile(ctx, resource)
	if err == nil || errors.Is(err, ErrHaltSubReconcilers) {
		r.status.observeGeneration(resource)
	}
	return result, err
}

func (r *ResourceReconciler[T]) mustWriteStatus(resource, original T, err error) bool {
	if resource.GetDeletionTimestamp() != nil && !r.SyncStatusDuringFinalization {
		return false
	}
	return !errors.Is(err, ErrSkipStatusUpdate) && !r.status.equal(resource, original)
}

// writeStatus writes the status. It never hides a failure: an error of the reconcilers that is not quiet is returned although the status was
// written, so that the request is retried with back-off, logged and counted.
func (r *ResourceReconciler[T]) writeStatus(
	ctx context.Context, resource, original T, result Result, reconcileErr error,
) (kept, swallowed Result, err error) {
	log := logr.FromContextOrDiscard(ctx)
	write := r.statusWriter(resource)
	if log.Enabled() {
		log.Info(write.doing, "diff", changes(log, r.status.of(original), r.status.of(resource)))
	}
	if isQuiet(reconcileErr) {
		if !errors.Is(reconcileErr, ErrHaltSubReconcilers) {
			result.Requeue = true //nolint:staticcheck // a quiet error asks for back-off
		}
		reconcileErr = nil
	}

	err = write.write(ctx, resource, original)
	switch {
	case err == nil:
		r.Config.Recorder.Event(resource, corev1.EventTypeNormal, write.succeeded, write.done)
		return Result{}, result, reconcileErr
	case apierrs.IsConflict(err) && !write.patch:
		// Somebody else was faster. The event of their change triggers the next request, but may not reach us.
		log.Info("unable to update status, the resource has changed", "reason", err.Error())
		result.Requeue = true //nolint:staticcheck // the only way to ask for back-off without an error
		return Result{}, result, reconcileErr
	case apierrs.IsNotFound(err) && resource.GetDeletionTimestamp() != nil && len(resource.GetFinalizers()) == 0:
		// The last finalizer was cleared and with it went the resource.
		return result, Result{}, reconcileErr
	default:
		logUnlessQuiet(ctx, err, write.unable)
		r.Config.Recorder.Eventf(resource, corev1.EventTypeWarning, write.failed, write.failure, err)
		return Result{}, Result{}, errors.Join(err, reconcileErr)
	}
}

// statusWrite is a way to write a status, and the words for it.
type statusWrite[T client.Object] struct {
	patch           bool
	doing, unable   string
	succeeded, done string
	failed, failure string
	write           func(ctx context.Context, resource, original T) error
}

func (r *ResourceReconciler[T]) statusWriter(resource T) statusWrite[T] {
	_, isUnstructured := any(resource).(*unstructured.Unstructured)
	if isUnstructured || !duck.IsDuck(resource, r.Config.Scheme()) {
		return statusWrite[T]{
			doing: "updating status", unable: "unable to update status",
			succeeded: "StatusUpdated", done: "Updated status",
			failed: "StatusUpdateFailed", failure: "Failed to update status: %v",
			write: func(ctx context.Context, resource, _ T) error {
				return r.Config.Status().Update(ctx, resource)
			},
		}
	}
	// The rest of a duck is not known, so it cannot be sent back whole.
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
