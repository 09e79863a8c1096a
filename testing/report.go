// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/testing/internal/literal"
)

// expectation is an Expect field of a config, with what was observed.
type expectation[T any] struct {
	// field is the name of the field, item what an element is called, elem its Go type.
	field, item, elem  string
	expected, observed []T
	diff               func(expected, observed T) string
	// tidy returns what is observed as people would write it. Nil for as it is.
	tidy func(observed T) T
}

// assert fails the test for each difference between what is expected and what was observed, by position. The last
// failure also says what was observed.
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

// paste returns what was observed as the field of a test case, for people who find that it is right.
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

// fail notes a failure, and prints it with an addition that is only for people.
func (c *ExpectConfig) fail(t *testing.T, failure, addition string) {
	c.observedErrors = append(c.observedErrors, failure)
	if t != nil {
		t.Helper()
		t.Error(strings.TrimSuffix(failure, "\n") + addition)
	}
}

// helper returns the Helper method of t, which may be nil. To be called right where it is returned.
func helper(t *testing.T) func() {
	if t == nil {
		return func() {}
	}
	return t.Helper
}

// each returns what convert makes of each item.
func each[From, To any](items []From, convert func(From) To) []To {
	converted := make([]To, len(items))
	for i, item := range items {
		converted[i] = convert(item)
	}
	return converted
}
