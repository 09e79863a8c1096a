// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"

	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/conditions"
	"trueup.dev/observe"
)

// reconcileFailed is the reason of the event about a failed request.
const reconcileFailed = "ReconcileFailed"

// locatedError is an error of a request. Its text starts with the origin: the step and the object. It is returned only
// to the controller, which logs it.
type locatedError struct {
	text string
	err  error
}

func (e *locatedError) Error() string { return e.text }
func (e *locatedError) Unwrap() error { return e.err }

// report returns the error of a request for the controller, which logs it. The text contains the path of the step and
// the object. report records an event on the reconciled resource unless an event for the error exists. It does not
// change the errors of requests that a test makes.
func (r *request) report(ctx context.Context, config Config, err error) error {
	if err == nil || !r.byController || isSilent(ctx, err) {
		return err
	}
	failures := r.trace.Failures(err)
	observe.ReportFailures(ctx, failures)
	if text := eventText(failures, err); text != "" && r.resource != nil {
		config.recorder().Eventf(r.resource, corev1.EventTypeWarning, reconcileFailed, "%s", text)
	}
	return &locatedError{text: locate(failures, err), err: err}
}

// eventText returns the text of an event about the failures that have no event yet, or "" if all have one. A conflict
// needs no event: another client wrote first, and the request is retried.
func eventText(failures []step.Failure, err error) string {
	silent := func(f step.Failure) bool { return f.Recorded || apierrs.IsConflict(f.Err) }
	loud := slices.DeleteFunc(slices.Clone(failures), silent)
	switch len(loud) {
	case 0:
		return ""
	case len(failures):
		return truncate(locate(failures, err))
	}
	texts := make([]string, len(loud))
	for i, f := range loud {
		texts[i] = f.Origin() + ": " + f.Err.Error()
	}
	return truncate(strings.Join(texts, "; "))
}

// locate returns the text of an error with the origins of its failures.
func locate(failures []step.Failure, err error) string {
	origins, located, plain := []string{}, []string{}, []string{}
	for _, f := range failures {
		from, text := f.Origin(), f.Err.Error()
		origins, located, plain = append(origins, from), append(located, from+": "+text), append(plain, text)
	}
	if len(failures) > 1 && strings.Join(plain, "\n") == err.Error() { // this is the text of errors.Join
		return strings.Join(located, "; ")
	}
	return strings.Join(origins, ", ") + ": " + err.Error()
}

// originOf returns the origins of an error as a key and a value for a log line.
func originOf(trace *step.Trace, err error) []any {
	origins := []string{}
	for _, f := range trace.Failures(err) {
		origins = append(origins, f.Origin())
	}
	return []any{"step", strings.Join(origins, ", ")}
}

// maxEventText is the maximum length of an event text that the API server accepts.
const maxEventText = 1024

func truncate(text string) string { return conditions.Cut(text, maxEventText) }
