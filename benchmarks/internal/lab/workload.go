// SPDX-License-Identifier: Apache-2.0

// Package lab measures controllers on a real Kubernetes API.
//
// [Run] goes through workloads, sizes and contenders in rounds. Each measurement is a [Trial]: a control plane of its
// own, parents in one namespace, and a manager with one controller. What is measured is up to the [Workload]; what most
// have in common are methods of the Trial.
package lab

import "context"

// Workload is work for a controller, of any size, for which there is a controller of each contender.
type Workload interface {
	// About describes the workload.
	About() About
	// Run measures the controller of one contender at one size. It reports what it finds to the trial.
	Run(ctx context.Context, trial *Trial) error
}

// About describes a workload.
type About struct {
	// Name is what the command line calls it.
	Name string
	// Text says in one line what is done.
	Text string
	// Noun is what a size counts, in the plural.
	Noun string
	// Sizes are those to measure unless others are asked for, the smallest first.
	Sizes []int
}
