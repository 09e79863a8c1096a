// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
)

// Errors with a meaning to the reconcilers in this package. Match and combine them with [errors.Is], [errors.Join] and
// %w.
var (
	// ErrQuiet marks an error that is neither logged nor recorded as an event. The request is retried with back-off.
	ErrQuiet = errors.New("quiet errors are returned as errors, but not logged or recorded")

	// ErrHaltSubReconcilers stops the reconcilers that follow without being a failure: the status is written as usual. The
	// request is retried with back-off, unless the result beside it has a RequeueAfter, or the step waits for an object:
	// it was missing, it is tracked with [Config.TrackAndGet], and the controller watches its kind with [EnqueueTracked].
	ErrHaltSubReconcilers = fmt.Errorf("stop processing SubReconcilers, without returning an error: %w", ErrQuiet)

	// ErrRetryAfter marks a failure that is dealt with: the reconcilers that follow are stopped, and the request is
	// retried after the RequeueAfter of the result that is returned with it, instead of with back-off. Without a
	// RequeueAfter it is not retried before something happens. It is quiet.
	ErrRetryAfter = fmt.Errorf("retry after the time that the result tells: %w", ErrQuiet)

	// ErrSkipStatusUpdate keeps the [ResourceReconciler] from writing the status for this request. Alone it is reported
	// like any other error; join it with ErrQuiet or the error that is the reason.
	ErrSkipStatusUpdate = errors.New("skip ResourceReconciler status update for this request")

	// ErrDurable marks an error that will not go away before the state changes. It is quiet and halts. The request is not
	// retried when the step has tracked objects and the controller watches their kinds with [EnqueueTracked]. Otherwise
	// nothing tells of the change, and it is retried with back-off.
	ErrDurable = errors.Join(ErrQuiet, ErrHaltSubReconcilers)

	// OnlyReconcileChildStatus is returned by DesiredChild or DesiredChildren to leave the children as they are and only
	// reflect their status on the parent.
	OnlyReconcileChildStatus = errors.New("leave children as they are and only reflect their status on the parent") //nolint:staticcheck // the name is part of the API that users move here with

	// PatchGenerationMismatch is returned by [Patch.Apply] when the target is of another generation than the patch was
	// made for.
	PatchGenerationMismatch = errors.New("patch generation did not match target") //nolint:staticcheck // the name is part of the API that users move here with
)

func isQuiet(err error) bool {
	return errors.Is(err, ErrQuiet)
}

// isSilent is true when an error is neither logged nor recorded: it is quiet, or comes of the controller being stopped
// in the middle of a request.
func isSilent(ctx context.Context, err error) bool {
	return isQuiet(err) || isShutdown(ctx)
}

// joinLoud joins errors of which each stands for itself. Joining a quiet error to another makes the other quiet too,
// which is how authors mark errors, so here quiet ones only count when there are no others.
func joinLoud(errs ...error) error {
	var loud, quiet []error
	for _, err := range errs {
		switch {
		case err == nil:
		case isQuiet(err):
			quiet = append(quiet, err)
		default:
			loud = append(loud, err)
		}
	}
	if len(loud) == 0 {
		loud = quiet
	}
	if len(loud) == 1 {
		return loud[0]
	}
	return errors.Join(loud...)
}
