// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/literal"
)

// VerifyFunc makes further assertions about the result and the error of a reconciler.
type VerifyFunc func(t *testing.T, result reconcilers.Result, err error)

// outcome is the expected outcome of a call of a reconciler.
type outcome struct {
	shouldErr bool
	result    reconcilers.Result
	verify    VerifyFunc
	differ    Differ
}

func (o outcome) assert(t *testing.T, result reconcilers.Result, err error) {
	t.Helper()
	if (err != nil) != o.shouldErr {
		t.Errorf("Reconcile() error = %v, ShouldErr %v", err, o.shouldErr)
	}
	if err == nil {
		// Controllers ignore the result of a reconciler that fails.
		if diff := o.differ.Result(normalizeResult(o.result), normalizeResult(result)); diff != "" {
			failValue(t, "ExpectedResult", diff, "ExpectedResult", result)
		}
	}
	if o.verify != nil {
		o.verify(t, result, err)
	}
}

// normalizeResult clears Requeue where it has no effect.
func normalizeResult(result reconcilers.Result) reconcilers.Result {
	if result.RequeueAfter != 0 {
		result.Requeue = false //nolint:staticcheck // deprecated, but reconcilers still return it
	}
	return result
}

// assertWiring compares the wiring of a reconciler, or reports the error of its set-up.
func assertWiring(t *testing.T, expected, observed *Wiring, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("ExpectWiring: %s", err)
		return
	}
	observed.Assert(t, expected)
}

// failValue reports a difference, and prints the observed value as Go code to paste over the field, see [literal.Of].
func failValue(t *testing.T, what, diff, field string, observed any, schemes ...*runtime.Scheme) {
	t.Helper()
	t.Errorf("%s differs (%s, %s):\n%s\nobserved, as an expectation:\n%s: %s,",
		what, DiffRemovedColor.Sprint("-expected"), DiffAddedColor.Sprint("+actual"),
		strings.TrimSuffix(ColorizeDiff(diff), "\n"), field, literal.Of(observed, schemes...))
}
