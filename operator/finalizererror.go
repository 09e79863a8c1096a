// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"net/http"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// FinalizerError is an error of a request that writes finalizers.
type FinalizerError interface {
	error
	// PatchRequest returns the change of the object that failed.
	PatchRequest() resource.PatchRequest
}

var (
	_ FinalizerError    = (*FinalizerOperationError)(nil)
	_ apierrs.APIStatus = (*FinalizerOperationError)(nil)
)

// FinalizerOperationError is the error of an [Opinionated] that cannot write a finalizer, for example because a
// permission is missing. As an error of the handler it reaches OnError and the ErrorHandler of an App. If the finalizer
// was to be added, the [RetryPolicy] decides when to try again, because the handler is not called without it. If the
// finalizer was to be removed, it is tried again without a limit. Conflicts with other clients are not reported.
type FinalizerOperationError struct {
	err     error
	request resource.PatchRequest
}

// NewFinalizerOperationError returns an error for a request that failed with err.
func NewFinalizerOperationError(err error, request resource.PatchRequest) *FinalizerOperationError {
	return &FinalizerOperationError{err: err, request: request}
}

// Error returns the text of the error of the request.
func (e *FinalizerOperationError) Error() string {
	if e.err == nil {
		return "unable to write finalizers"
	}
	return "unable to write finalizers: " + e.err.Error()
}

// Unwrap returns the error of the request.
func (e *FinalizerOperationError) Unwrap() error { return e.err }

// PatchRequest returns the change of the object that failed: its finalizers, and the resource version as a lock.
func (e *FinalizerOperationError) PatchRequest() resource.PatchRequest { return e.request }

// Status returns the response of the API server, with its code. Without a response, the code is 500.
func (e *FinalizerOperationError) Status() metav1.Status {
	var status apierrs.APIStatus
	if errors.As(e.err, &status) {
		return status.Status()
	}
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonUnknown,
		Message: e.Error(),
	}
}

// replaceFinalizer removes the finalizer from and adds the finalizer to. Either may be empty. Its error is quiet after
// a conflict with another client, and a FinalizerOperationError otherwise.
func replaceFinalizer(ctx context.Context, object client.Object, from, to string) error {
	names := slices.Clone(object.GetFinalizers())
	version := object.GetResourceVersion()
	var err error
	switch {
	case from == "":
		err = reconcilers.AddFinalizer(ctx, object, to)
	case to == "":
		err = reconcilers.ClearFinalizer(ctx, object, from)
	default:
		err = reconcilers.ReplaceFinalizer(ctx, object, from, to)
	}
	if err == nil {
		return nil
	}
	if isConflict(err) {
		// The request is retried, and no failure is logged.
		return errors.Join(reconcilers.ErrQuiet, err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == from })
	if to != "" && !slices.Contains(names, to) {
		names = append(names, to)
	}
	return NewFinalizerOperationError(err, resource.PatchRequest{Operations: []resource.PatchOperation{
		{Path: "/metadata/finalizers", Operation: resource.PatchOpAdd, Value: names},
		{Path: "/metadata/resourceVersion", Operation: resource.PatchOpReplace, Value: version},
	}})
}

// isConflict reports whether another client has changed, deleted or replaced the object.
func isConflict(err error) bool {
	if apierrs.IsConflict(err) || apierrs.IsNotFound(err) {
		return true
	}
	// Another object of the same name has another UID. Any other invalid field is a failure.
	var status apierrs.APIStatus
	if !apierrs.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return apierrs.IsInvalid(err)
	}
	return !slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field != "metadata.uid"
	})
}
