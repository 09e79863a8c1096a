// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"math"
	"math/rand/v2"
	"time"

	"trueup.dev/internal/nilcheck"
	"trueup.dev/resource"
)

// RetryPolicy tells whether to try again after an error, and when. The attempt is 0 after the first failure, 1 after
// the second, and so on. It must be safe for concurrent use.
type RetryPolicy func(err error, attempt int) (retry bool, after time.Duration)

// RetryDequeuePolicy tells whether a change of an object that waits for a retry replaces the retry: true handles the
// object as it is now at once, as a first attempt; false lets it wait for the rest of the time, and then handles it as
// it is by then. It is asked for every change that reaches the handler while a retry is waiting.
type RetryDequeuePolicy func(
	newAction ResourceAction, newObject resource.Object, retryAction ResourceAction, retryObject resource.Object,
	retryErr error,
) bool

// BackoffPolicy is a [RetryPolicy] that waits longer after each failure. The zero value is what [DefaultRetryPolicy] is
// made of.
type BackoffPolicy struct {
	// Initial is the time before the first retry. Default: 1 second.
	Initial time.Duration
	// Max is the longest time between retries, give or take the Jitter. Default: 5 minutes, or Initial if that is longer.
	Max time.Duration
	// Factor is by how much each time is longer than the one before. Default: 2.
	Factor float64
	// Jitter is the part of each time that is left to chance, so that what has failed together is not tried again
	// together: with 0.2 it is between 80 and 120 percent. Default: 0.2; less than 0 is none, and more than 1 is 1.
	Jitter float64
	// MaxAttempts is how many retries there are. Default: no end.
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

// ExponentialBackoffRetryPolicy returns a policy that waits for the initial time, then twice as long each time, and
// gives up after so many retries. The first failure has attempt 0, so that with 5 there are 6 retries, the last one
// after 32 times the initial time: these are the numbers of Grafana App SDK, for those who rely on them.
func ExponentialBackoffRetryPolicy(initial time.Duration, maxAttempts int) RetryPolicy {
	return func(_ error, attempt int) (bool, time.Duration) {
		if attempt > maxAttempts {
			return false, 0
		}
		after := float64(initial) * math.Pow(2, float64(attempt))
		return true, time.Duration(math.Min(after, math.MaxInt64/2))
	}
}

// DefaultRetryPolicy is what an App and an [InformerController] retry with unless told otherwise: after a second, twice
// as long each time, at most 5 minutes, give or take a fifth, without end. It may be replaced before they are made.
var DefaultRetryPolicy = BackoffPolicy{}.Policy()

// OpinionatedRetryDequeuePolicy is what happens without a [RetryDequeuePolicy]: a deletion, another object of the same
// name and a new generation are handled at once; anything else lets the retry wait. It also waits when one of the
// objects is nil: then there is nothing to compare.
func OpinionatedRetryDequeuePolicy(
	newAction ResourceAction, newObject resource.Object, retryAction ResourceAction, retryObject resource.Object, _ error,
) bool {
	if newAction == ResourceActionDelete {
		return retryAction != ResourceActionDelete
	}
	if nilcheck.IsNil(newObject) || nilcheck.IsNil(retryObject) {
		return false
	}
	return newObject.GetUID() != retryObject.GetUID() || newObject.GetGeneration() != retryObject.GetGeneration()
}
