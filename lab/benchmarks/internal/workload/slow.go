// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	"trueup.dev/lab/benchmarks/internal/lab"
)

// Slow is [Converge] on a slow API server: the number of requests counts more than the computation.
type Slow struct {
	// Latency is added to every request.
	Latency time.Duration
}

// About describes the workload.
func (w Slow) About() lab.About {
	about := Converge{}.About()
	about.Name, about.Sizes = "slow", []int{200, 1000}
	about.Text += ", with " + w.Latency.String() + " latency on every request to the API"
	return about
}

// Run measures until all parents have converged.
func (w Slow) Run(ctx context.Context, trial *lab.Trial) error {
	trial.Latency = w.Latency
	return oneChildEach(ctx, trial, w.About().Noun, withOneChild)
}
