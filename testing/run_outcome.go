// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/literal"
)

// VerifyFunc makes further assertions about what a reconciler has returned.
type VerifyFunc func(t *testing.T, result reconcilers.Result, err error)

// outcome is what a call of a reconciler should come to.
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
		// The result of a reconciler that fails is not used by anybody.
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

// assertWiring compares what a reconciler has asked for, unless that could not be found out.
func assertWiring(t *testing.T, expected, observed *Wiring, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("ExpectWiring: %s", err)
		return
	}
	observed.Assert(t, expected)
}

// failValue reports a value that is not the expected one, and the observed value in a form that can be pasted over
// field, see [literal.Of].
func failValue(t *testing.T, what, diff, field string, observed any, schemes ...*runtime.Scheme) {
	t.Helper()
	t.Errorf("%s differs (%s, %s): \n%s\nobserved, as an expectation:\n%s: %s,",
		what, DiffRemovedColor.Sprint("-expected"), DiffAddedColor.Sprint("+actual"),
		strings.TrimSuffix(ColorizeDiff(diff), "\n"), field, literal.Of(observed, schemes...))
}
