// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/testing/internal/literal"
)

// expectation is an Expect field of a config, with the observed values.
type expectation[T any] struct {
	// field is the name of the field, item the name of an element in messages, elem its Go type.
	field, item, elem  string
	expected, observed []T
	diff               func(expected, observed T) string
	// tidy returns an observed value as people write it. Nil for no change.
	tidy func(observed T) T
}

// assert fails the test for each difference between expected and observed values, by position. The last failure also
// prints all observed values.
func assert[T any](t *testing.T, c *ExpectConfig, e expectation[T]) {
	helper(t)()
	if err := c.open().err; err != nil {
		c.fail(t, err.Error(), "")
		return
	}
	failures := e.failures(c)
	for i, failure := range failures {
		addition := ""
		if i == len(failures)-1 && t != nil {
			addition = e.paste(c.Scheme)
		}
		c.fail(t, failure, addition)
	}
}

func (e expectation[T]) failures(c *ExpectConfig) []string {
	var failures []string
	for i, expected := range e.expected {
		if i >= len(e.observed) {
			failures = append(
				failures, fmt.Sprintf("%s[%d] not observed%s: %s", e.field, i, c.configName(), c.describe(expected)),
			)
		} else if diff := e.diff(expected, e.observed[i]); diff != "" {
			failures = append(failures, fmt.Sprintf("%s[%d] differs%s (%s, %s):\n%s", e.field, i, c.configName(),
				DiffRemovedColor.Sprint("-expected"), DiffAddedColor.Sprint("+actual"), ColorizeDiff(diff)))
		}
	}
	for _, extra := range e.observed[min(len(e.expected), len(e.observed)):] {
		failures = append(failures, fmt.Sprintf("Unexpected %s observed%s: %s", e.item, c.configName(), c.describe(extra)))
	}
	return failures
}

// paste returns the observed values as the field of a test case, for users to paste if the values are correct.
func (e expectation[T]) paste(scheme *runtime.Scheme) string {
	if len(e.observed) == 0 {
		return "\nobserved: none"
	}
	return "\nobserved, as an expectation:\n" + literal.Field(e.field, e.elem, each(e.observed, func(observed T) any {
		if e.tidy != nil {
			observed = e.tidy(observed)
		}
		return observed
	}), scheme)
}

// fail records a failure, and prints it with an addition, which is not recorded.
func (c *ExpectConfig) fail(t *testing.T, failure, addition string) {
	c.observedErrors = append(c.observedErrors, failure)
	if t != nil {
		t.Helper()
		t.Error(strings.TrimSuffix(failure, "\n") + addition)
	}
}

// helper returns the Helper method of t, which may be nil. Callers call the result at once.
func helper(t *testing.T) func() {
	if t == nil {
		return func() {}
	}
	return t.Helper
}

// each returns the converted items.
func each[From, To any](items []From, convert func(From) To) []To {
	converted := make([]To, len(items))
	for i, item := range items {
		converted[i] = convert(item)
	}
	return converted
}
