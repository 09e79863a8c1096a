// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"math"
	"math/rand/v2"
	"time"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/resource"
)

// RetryPolicy decides whether to retry after an error, and after which delay. The attempt is 0 after the first
// failure, 1 after the second, and so on. It must be safe for concurrent use.
type RetryPolicy func(err error, attempt int) (retry bool, after time.Duration)

// RetryDequeuePolicy decides whether a change of an object replaces a waiting retry. If it returns true, the current
// state of the object is handled at once, as a first attempt. If it returns false, the object is handled when the
// retry is due, in the state that it has by then; but a new generation that leads to another action is handled at once.
// It is called for every change that reaches the handler while a retry
// is waiting.
type RetryDequeuePolicy func(
	newAction ResourceAction, newObject resource.Object, retryAction ResourceAction, retryObject resource.Object,
	retryErr error,
) bool

// BackoffPolicy is a [RetryPolicy] with exponential backoff. The zero value is the configuration of
// [DefaultRetryPolicy].
type BackoffPolicy struct {
	// Initial is the delay before the first retry. Default: 1 second.
	Initial time.Duration
	// Max is the longest delay between retries, before Jitter applies. Default: 5 minutes, or Initial if that is
	// longer.
	Max time.Duration
	// Factor is the ratio of each delay to the previous one. Default: 2.
	Factor float64
	// Jitter is the random part of each delay, which spreads retries of failures that occurred together. With 0.2 a
	// delay is between 80 and 120 percent of its value. Default: 0.2; a negative value disables jitter, and a value
	// greater than 1 means 1.
	Jitter float64
	// MaxAttempts is the maximum number of retries. Default: unlimited.
	MaxAttempts int
}

// Policy returns the policy.
func (p BackoffPolicy) Policy() RetryPolicy {
	p = p.withDefaults()
	return func(_ error, attempt int) (bool, time.Duration) {
		if p.MaxAttempts > 0 && attempt >= p.MaxAttempts {
			return false, 0
		}
		after := math.Min(float64(p.Initial)*math.Pow(p.Factor, float64(attempt)), float64(p.Max))
		after *= 1 + p.Jitter*(2*rand.Float64()-1)
		return true, time.Duration(after)
	}
}

func (p BackoffPolicy) withDefaults() BackoffPolicy {
	if p.Initial <= 0 {
		p.Initial = time.Second
	}
	if p.Max <= 0 {
		p.Max = 5 * time.Minute
	}
	p.Max = max(p.Max, p.Initial)
	p.Jitter = min(p.Jitter, 1)
	if p.Factor < 1 {
		p.Factor = 2
	}
	switch {
	case p.Jitter == 0:
		p.Jitter = 0.2
	case p.Jitter < 0:
		p.Jitter = 0
	}
	return p
}

// ExponentialBackoffRetryPolicy returns a policy that doubles the delay after each failure. The first failure has
// attempt 0, so maxAttempts 5 allows 6 retries, the last one after 32 times the initial delay. These are the numbers
// of Grafana App SDK, for code that relies on them.
func ExponentialBackoffRetryPolicy(initial time.Duration, maxAttempts int) RetryPolicy {
	return func(_ error, attempt int) (bool, time.Duration) {
		if attempt > maxAttempts {
			return false, 0
		}
		after := float64(initial) * math.Pow(2, float64(attempt))
		return true, time.Duration(math.Min(after, math.MaxInt64/2))
	}
}

// DefaultRetryPolicy is the default policy of an App and an [InformerController]: the first delay is 1 second, each
// delay is twice the previous one up to 5 minutes, with a jitter of 20 percent, without a limit of retries. To replace
// it, assign a policy before you make them.
var DefaultRetryPolicy = BackoffPolicy{}.Policy()

// OpinionatedRetryDequeuePolicy is the default [RetryDequeuePolicy]. A deletion replaces the retry of another action,
// and a new object of the same name or a new generation replace the retry of the same action. Any other change does
// not. It also returns false if one of the objects is nil, because it cannot compare them.
func OpinionatedRetryDequeuePolicy(
	newAction ResourceAction, newObject resource.Object, retryAction ResourceAction, retryObject resource.Object, _ error,
) bool {
	if newAction == ResourceActionDelete {
		return retryAction != ResourceActionDelete
	}
	if newAction != retryAction || nilcheck.IsNil(newObject) || nilcheck.IsNil(retryObject) {
		return false
	}
	return newObject.GetUID() != retryObject.GetUID() || newObject.GetGeneration() != retryObject.GetGeneration()
}
