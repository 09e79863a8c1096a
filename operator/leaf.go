// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/observation"
	"trueup.dev/internal/engine/registration"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/validation"
)

// WatcherReconciler returns a reconciler that calls a watcher, for use in a tree of reconcilers. It calls the watcher
// only when the resource has changed. To select other changes, set the fields of the returned [WithEdge].
//
// In a tree below a [reconcilers.ResourceReconciler], Delete is called only for resources that have one of Finalizers.
// To receive all deletions, use a [Controller].
func WatcherReconciler[T resource.Object](watcher TypedWatcher[T]) *WithEdge[T] {
	return &WithEdge[T]{Name: "Watcher", OnlyChanges: true, Reconciler: &leaf[T]{handler: watcher, call: func(
		ctx context.Context, object T,
	) (reconcilers.Result, error) {
		return reconcilers.Result{}, watch(ctx, watcher, object)
	}}}
}

func watch[T resource.Object](ctx context.Context, watcher TypedWatcher[T], object T) error {
	switch EdgeFrom(ctx).Action {
	case ReconcileActionDeleted:
		return watcher.Delete(ctx, object)
	case ReconcileActionUpdated:
		if previous, ok := PreviousFrom[T](ctx); ok {
			return watcher.Update(ctx, previous, object)
		}
		return watcher.Update(ctx, object, object)
	case ReconcileActionResynced:
		if syncer, ok := watcher.(Syncer[T]); ok {
			return syncer.Sync(ctx, object)
		}
		if previous, ok := PreviousFrom[T](ctx); ok {
			return watcher.Update(ctx, previous, object)
		}
	}
	return watcher.Add(ctx, object)
}

// AsSubReconciler returns a reconciler that calls a Reconciler, for use in a tree of reconcilers. It calls the
// Reconciler only when the resource has changed. To select other changes, set the fields of the returned [WithEdge]. A
// Reconciler that was made by [AsReconciler] is called for every request.
func AsSubReconciler[T resource.Object](reconciler Reconciler) *WithEdge[T] {
	if tree, ok := treeFor[T](reconciler); ok {
		return &WithEdge[T]{Name: "Reconciler", Reconciler: tree}
	}
	return &WithEdge[T]{Name: "Reconciler", OnlyChanges: true, Reconciler: &leaf[T]{handler: reconciler, call: func(
		ctx context.Context, object T,
	) (reconcilers.Result, error) {
		c := callFrom(ctx)
		result, err := reconciler.Reconcile(ctx, ReconcileRequest{Action: c.edge.Action, Object: object, State: c.state})
		if result.State != nil {
			c.state = result.State
		}
		if err != nil && result.RequeueAfter > 0 && !errors.Is(err, reconcilers.ErrHaltSubReconcilers) {
			err = failedUntil{after: requeueAfter(result.RequeueAfter), cause: err}
		}
		return reconcilers.Result{RequeueAfter: result.RequeueAfter}, err
	}}}
}

// AsReconciler returns a [Reconciler] that calls a tree of reconcilers, for example a [reconcilers.Sequence]. As below
// a [reconcilers.ResourceReconciler], the watches of the tree are set up, the status that it sets is written, and it
// is called for every request, whether the resource has changed or not.
func AsReconciler[T resource.Object](reconciler reconcilers.SubReconciler[T]) Reconciler {
	return &subReconciler[T]{reconciler}
}

type subReconciler[T resource.Object] struct{ reconcilers.SubReconciler[T] }

// Reconcile is called only if the Reconciler is wrapped in another one. Then no watches are set up and no status is
// written.
func (r *subReconciler[T]) Reconcile(ctx context.Context, req ReconcileRequest) (ReconcileResult, error) {
	object, err := cast[T](req.Object)
	if err != nil {
		return ReconcileResult{}, err
	}
	result, err := r.SubReconciler.Reconcile(ctx, object)
	return ReconcileResult{RequeueAfter: result.RequeueAfter}, err
}

// leaf calls a handler with a copy of the resource. Changes of the copy are not written.
type leaf[T resource.Object] struct {
	handler any
	call    func(ctx context.Context, object T) (reconcilers.Result, error)
}

var _ validation.Validator = (*leaf[client.Object])(nil)

func (l *leaf[T]) Validate(context.Context) error {
	if nilcheck.IsNil(l.handler) {
		return errors.New("the handler must not be nil")
	}
	return nil
}

func (l *leaf[T]) SetupWithManager(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	if handler, ok := l.handler.(interface {
		SetupWithManager(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error
	}); ok {
		defer registration.Enter(ctx, unwrapped(l.handler))()
		return handler.SetupWithManager(ctx, mgr, bldr)
	}
	return nil
}

func (l *leaf[T]) Reconcile(ctx context.Context, object T) (reconcilers.Result, error) {
	copied, ok := object.DeepCopyObject().(T)
	if !ok {
		return reconcilers.Result{}, fmt.Errorf("a copy of %T is not of the same type", object)
	}
	result, err := l.call(observation.WithCopy(ctx, copied), copied)
	adoptObservedGeneration(object, copied)
	return result, err
}

// adoptObservedGeneration copies observedGeneration from the handler's copy, in case the handler has written the
// status itself. The copy then has another resource version.
func adoptObservedGeneration(to, from client.Object) {
	written, noted := observedGeneration(from), observedGeneration(to)
	if written != nil && noted != nil && *written == to.GetGeneration() &&
		from.GetResourceVersion() != to.GetResourceVersion() {
		*noted = *written
	}
}
