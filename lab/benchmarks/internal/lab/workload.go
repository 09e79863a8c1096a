// SPDX-License-Identifier: Apache-2.0

// Package lab measures controllers on a real Kubernetes API.
//
// [Run] runs all combinations of workloads, sizes and contenders in rounds. Each measurement is a [Trial]: its own
// control plane, parents in one namespace, and a manager with one controller. The [Workload] defines what is measured;
// methods of the Trial provide the common parts.
package lab

import "context"

// Workload is a task for a controller, of any size, with a controller of each contender.
type Workload interface {
	// About describes the workload.
	About() About
	// Run measures the controller of one contender at one size. It reports the results to the trial.
	Run(ctx context.Context, trial *Trial) error
}

// About describes a workload.
type About struct {
	// Name is the name on the command line.
	Name string
	// Text describes the workload in one line.
	Text string
	// Noun is the unit of a size, in the plural.
	Noun string
	// Sizes are the default sizes in ascending order.
	Sizes []int
}
