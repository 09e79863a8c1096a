// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	"trueup.dev/resource"
)

// Reconciler handles everything that happens to resources of a kind in one function. Calls for one object never
// overlap.
type Reconciler interface {
	Reconcile(ctx context.Context, req ReconcileRequest) (ReconcileResult, error)
}

// ReconcileRequest is what a [Reconciler] is called with.
type ReconcileRequest struct {
	// Action is what has happened to the object.
	Action ReconcileAction
	// Object is the object as it is now, or as it was last known when it is gone. It is a copy that the reconciler may
	// change.
	Object resource.Object
	// State is what the attempt before has left for this one, nil on the first. It lives in memory only.
	State map[string]any
}

// ReconcileResult is what a [Reconciler] asks for.
type ReconcileResult struct {
	// RequeueAfter asks for another call after this time, with the same action unless the object changes in between.
	// Returned with an error, it decides when: the error is logged, counted and handed to error handlers as any other, but
	// the retry policy is not asked, and it does not count as one of its attempts. Default: none.
	RequeueAfter time.Duration
	// State is for the next attempt, when there is one because of RequeueAfter or an error. Nil leaves the state as it is.
	State map[string]any
}

// TypedReconcileRequest is [ReconcileRequest] for one Go type.
type TypedReconcileRequest[T resource.Object] struct {
	// Action is what has happened to the object.
	Action ReconcileAction
	// Object is the object as it is now, or as it was last known when it is gone. It is a copy that the reconciler may
	// change.
	Object T
	// State is what the attempt before has left for this one, nil on the first. It lives in memory only.
	State map[string]any
}

// TypedReconciler is a [Reconciler] for one Go type, made of a function.
type TypedReconciler[T resource.Object] struct {
	// ReconcileFunc is called for everything that happens. Nil does nothing.
	ReconcileFunc func(ctx context.Context, req TypedReconcileRequest[T]) (ReconcileResult, error)
}

// Reconcile calls ReconcileFunc. An object of another type is a [CannotCastError], which is not retried.
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

// CannotCastError tells that an object is not of the Go type that a handler is for. Trying again would not help, so it
// is a terminal error.
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
