// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	"trueup.dev/resource"
)

// Reconciler handles all actions for resources of a kind in one function. Calls for one object never overlap.
type Reconciler interface {
	Reconcile(ctx context.Context, req ReconcileRequest) (ReconcileResult, error)
}

// ReconcileRequest is the argument of a [Reconciler].
type ReconcileRequest struct {
	// Action is the change of the object.
	Action ReconcileAction
	// Object is the current state of the object, or its last known state if it no longer exists. It is a copy that the
	// reconciler may change.
	Object resource.Object
	// State is the state that the previous attempt returned, nil on the first attempt. It is only in memory.
	State map[string]any
}

// ReconcileResult is the result of a [Reconciler].
type ReconcileResult struct {
	// RequeueAfter requests another call after this time, with the same action unless the object changes first. If it
	// is returned with an error, it replaces the delay of the retry policy: the error is logged, counted and passed to
	// error handlers as usual, but the retry policy is not called, and the attempt does not count for it. Default:
	// none.
	RequeueAfter time.Duration
	// State is passed to the next attempt if RequeueAfter or an error leads to one. Nil leaves the state unchanged.
	State map[string]any
}

// TypedReconcileRequest is [ReconcileRequest] for one Go type.
type TypedReconcileRequest[T resource.Object] struct {
	// Action is the change of the object.
	Action ReconcileAction
	// Object is the current state of the object, or its last known state if it no longer exists. It is a copy that the
	// reconciler may change.
	Object T
	// State is the state that the previous attempt returned, nil on the first attempt. It is only in memory.
	State map[string]any
}

// TypedReconciler is a [Reconciler] for one Go type that calls a function.
type TypedReconciler[T resource.Object] struct {
	// ReconcileFunc is called for all actions. If it is nil, the reconciler does nothing.
	ReconcileFunc func(ctx context.Context, req TypedReconcileRequest[T]) (ReconcileResult, error)
}

// Reconcile calls ReconcileFunc. For an object of another type it returns a [CannotCastError], which is not retried.
func (r *TypedReconciler[T]) Reconcile(ctx context.Context, req ReconcileRequest) (ReconcileResult, error) {
	if r.ReconcileFunc == nil {
		return ReconcileResult{}, nil
	}
	object, err := cast[T](req.Object)
	if err != nil {
		return ReconcileResult{}, err
	}
	return r.ReconcileFunc(ctx, TypedReconcileRequest[T]{Action: req.Action, Object: object, State: req.State})
}

// CannotCastError reports that an object does not have the Go type that a handler expects. It is a terminal error,
// because retrying cannot resolve it.
type CannotCastError struct {
	// Have and Want are the names of the Go types.
	Have, Want string
}

// NewCannotCastError returns the error for an object that should have been a T.
func NewCannotCastError[T any](have any) *CannotCastError {
	var want *T
	return &CannotCastError{Have: fmt.Sprintf("%T", have), Want: fmt.Sprintf("%T", want)[1:]}
}

func (e *CannotCastError) Error() string {
	return fmt.Sprintf("cannot handle an object of type %s, only of type %s", e.Have, e.Want)
}

func cast[T resource.Object](object resource.Object) (T, error) {
	typed, ok := object.(T)
	if !ok {
		return typed, NewCannotCastError[T](object)
	}
	return typed, nil
}
