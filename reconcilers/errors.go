// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Errors with a special meaning for the reconcilers in this package. Match and combine them with [errors.Is],
// [errors.Join] and %w.
var (
	// ErrQuiet marks an error that is neither logged nor recorded as an event. The request is retried with back-off.
	ErrQuiet = errors.New("quiet errors are returned as errors, but not logged or recorded")

	// ErrHaltSubReconcilers stops the reconcilers that follow and is not a failure: the status is written as usual. The
	// request is retried with back-off, with two exceptions: the result has a RequeueAfter, or the step waits for a
	// missing object. A step waits for an object that it tracks with [Config.TrackAndGet] if the controller watches the
	// kind with [EnqueueTracked].
	ErrHaltSubReconcilers = fmt.Errorf("stop processing SubReconcilers, without returning an error: %w", ErrQuiet)

	// ErrRetryAfter marks a handled failure. It stops the reconcilers that follow. The request is retried after the
	// RequeueAfter of the returned result, without back-off. Without a RequeueAfter, the request is not retried until
	// an event occurs. The error is quiet.
	ErrRetryAfter = fmt.Errorf("retry after the RequeueAfter of the result: %w", ErrQuiet)

	// ErrSkipStatusUpdate prevents the [ResourceReconciler] from writing the status in this request. Alone it is
	// reported like any other error. Join it with ErrQuiet or with the cause.
	ErrSkipStatusUpdate = errors.New("skip ResourceReconciler status update for this request")

	// ErrDurable marks an error that persists until the state changes. It is quiet and halts. The request is not
	// retried if the step has tracked objects and the controller watches their kinds with [EnqueueTracked]. Otherwise
	// the request is retried with back-off, because no event announces the change.
	ErrDurable = errors.Join(ErrQuiet, ErrHaltSubReconcilers)

	// OnlyReconcileChildStatus is returned by DesiredChild or DesiredChildren to leave the children unchanged and only
	// reflect their status on the parent.
	//
	//nolint:staticcheck // the name is part of the API that users move here with
	OnlyReconcileChildStatus = errors.New("leave children as they are and only reflect their status on the parent")

	// PatchGenerationMismatch is returned by [Patch.Apply] if the generation of the target differs from the generation
	// of the patch.
	//
	//nolint:staticcheck // the name is part of the API that users move here with
	PatchGenerationMismatch = errors.New("patch generation did not match target")
)

// causeOf returns the text of an error for a condition, without the texts of errors that only have a meaning for the
// reconcilers in this package, and without times. It is "" if nothing else is known.
func causeOf(err error) string {
	switch err := err.(type) { //nolint:errorlint // joined errors are taken apart
	case nil:
		return ""
	case *deferredStep:
		return err.why
	case *removalPending:
		return "" // the steps have said what they wait for
	case interface{ Unwrap() []error }:
		texts, causes := []string{}, []string{}
		for _, part := range err.Unwrap() {
			texts = append(texts, part.Error())
			if cause := causeOf(part); cause != "" {
				causes = append(causes, cause)
			}
		}
		if strings.Join(texts, "\n") == err.(error).Error() {
			return truncate(strings.Join(causes, "; "))
		}
	}
	text := err.Error()
	for _, meaning := range []error{ErrDurable, ErrHaltSubReconcilers, ErrRetryAfter, ErrQuiet, ErrSkipStatusUpdate} {
		text = strings.TrimSuffix(strings.TrimSuffix(text, meaning.Error()), ": ")
		text = strings.TrimPrefix(text, meaning.Error()+": ")
	}
	return truncate(text)
}

func isQuiet(err error) bool {
	return errors.Is(err, ErrQuiet)
}

// isSilent reports whether an error is neither logged nor recorded: it is quiet, or the controller was stopped during
// the request.
func isSilent(ctx context.Context, err error) bool {
	return isQuiet(err) || isShutdown(ctx)
}

// joinErrors joins independent errors. A joined quiet error makes the whole error quiet, because users mark errors in
// this way. joinErrors therefore leaves out quiet errors if other errors exist.
func joinErrors(errs ...error) error {
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
