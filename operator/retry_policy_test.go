// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"trueup.dev/operator"
	"trueup.dev/resource"
)

// times returns the delays of a policy for attempts from 0, until it gives up.
func times(policy operator.RetryPolicy, most int) (after []time.Duration) {
	for attempt := range most {
		retry, d := policy(errTest, attempt)
		if !retry {
			break
		}
		after = append(after, d)
	}
	return after
}

func TestRetryPolicies(t *testing.T) {
	const s = time.Second
	for name, tc := range map[string]struct {
		policy operator.RetryPolicy
		want   []time.Duration
	}{
		"exponential": {
			operator.ExponentialBackoffRetryPolicy(5*s, 5), []time.Duration{5 * s, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s},
		},
		"exponential, once":  {operator.ExponentialBackoffRetryPolicy(s, 0), []time.Duration{s}},
		"exponential, never": {operator.ExponentialBackoffRetryPolicy(s, -1), nil},
		"back-off": {
			operator.BackoffPolicy{Jitter: -1, MaxAttempts: 3}.Policy(), []time.Duration{s, 2 * s, 4 * s},
		},
		"back-off, capped": {
			operator.BackoffPolicy{Jitter: -1, Max: 3 * s, MaxAttempts: 4}.Policy(), []time.Duration{s, 2 * s, 3 * s, 3 * s},
		},
		"back-off, linear": {
			operator.BackoffPolicy{Jitter: -1, Initial: 2 * s, Factor: 1, MaxAttempts: 3}.Policy(),
			[]time.Duration{2 * s, 2 * s, 2 * s},
		},
		"back-off, by a third": {
			operator.BackoffPolicy{Jitter: -1, Initial: 9 * s, Factor: 4. / 3, MaxAttempts: 3}.Policy(),
			[]time.Duration{9 * s, 12 * s, 16 * s},
		},
		"back-off, first is longest": {
			operator.BackoffPolicy{Jitter: -1, Initial: 10 * time.Minute, MaxAttempts: 2}.Policy(),
			[]time.Duration{10 * time.Minute, 10 * time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) { equal(t, "times", tc.want, times(tc.policy, 100)) })
	}
	t.Run("never overflows", func(t *testing.T) {
		for attempt, after := range times(operator.ExponentialBackoffRetryPolicy(time.Hour, math.MaxInt), 5000) {
			if after <= 0 {
				t.Fatalf("attempt %d is after %s", attempt, after)
			}
		}
		if retry, after := operator.DefaultRetryPolicy(errTest, math.MaxInt); !retry || after < 4*time.Minute ||
			after > 6*time.Minute {
			t.Errorf("the default policy returns %t, %s for a very late attempt", retry, after)
		}
	})
	t.Run("jitter", func(t *testing.T) {
		for _, jitter := range []float64{0, 0.5, 3} { // 0 means 0.2, and 1 is the maximum
			policy := operator.BackoffPolicy{Initial: time.Minute, Jitter: jitter}.Policy()
			part := min(jitter, 1)
			if part == 0 {
				part = 0.2
			}
			least, most := time.Hour, time.Duration(0)
			for range 2000 {
				_, after := policy(errTest, 0)
				least, most = min(least, after), max(most, after)
			}
			low, high := time.Duration((1-part)*float64(time.Minute)), time.Duration((1+part)*float64(time.Minute))
			if least < low || most > high {
				t.Errorf("jitter %v: %s to %s, want %s to %s", part, least, most, low, high)
			}
			if spread := most - least; spread < (high-low)*9/10 {
				t.Errorf("jitter %v: 2000 times are within %s of each other", part, spread)
			}
		}
	})
}

func TestOpinionatedRetryDequeuePolicy(t *testing.T) {
	create, update, remove := operator.ResourceActionCreate, operator.ResourceActionUpdate, operator.ResourceActionDelete
	for name, tc := range map[string]struct {
		action     operator.ResourceAction
		object     resource.Object
		wasAction  operator.ResourceAction
		wasObject  resource.Object
		supersedes bool
	}{
		"the same":                   {update, version("a", 1, 2), create, version("a", 1, 1), false},
		"a new generation":           {create, version("a", 2, 2), create, version("a", 1, 1), true},
		"another action":             {update, version("a", 2, 2), create, version("a", 1, 1), false},
		"another object":             {create, version("b", 1, 2), create, version("a", 1, 1), true},
		"a deletion":                 {remove, version("a", 1, 2), update, version("a", 1, 1), true},
		"a deletion that has failed": {remove, version("a", 2, 2), remove, version("a", 1, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			equal(
				t, "supersedes", tc.supersedes,
				operator.OpinionatedRetryDequeuePolicy(tc.action, tc.object, tc.wasAction, tc.wasObject, errTest),
			)
		})
	}
}

// A deletion replaces the retry of any other action. Every other action replaces only the retry of the same one: a
// creation that fails stays a creation.
func TestOpinionatedRetryDequeuePolicy_OnDifferentActions(t *testing.T) {
	create, update := operator.ResourceActionCreate, operator.ResourceActionUpdate
	remove, resync := operator.ResourceActionDelete, operator.ResourceActionResync
	retries := map[operator.ResourceAction][]operator.ResourceAction{
		create: {create}, update: {update}, resync: {resync}, remove: {create, update, resync},
	}
	for action, replaced := range retries {
		for _, retry := range []operator.ResourceAction{create, update, remove, resync} {
			got := operator.OpinionatedRetryDequeuePolicy(action, version("a", 2, 2), retry, version("a", 1, 1), errTest)
			if want := slices.Contains(replaced, retry); got != want {
				t.Errorf("%s of a new generation replaces the retry of %s = %t, want %t", action, retry, got, want)
			}
		}
	}
}
