// SPDX-License-Identifier: Apache-2.0

package testing

import "trueup.dev/testing/internal/cluster"

// RunOption changes how cases are run. Options are the last arguments of the Run methods of cases and suites.
type RunOption interface{ applyTo(options *runOptions) }

// runOptions are what RunOptions say.
type runOptions struct {
	parallel  bool
	realistic bool
	// clusters are the clusters to run on, by the name of the config. Empty for the API in memory.
	clusters map[string]*cluster.Cluster
}

type runOption func(options *runOptions)

func (o runOption) applyTo(options *runOptions) { o(options) }

// Parallel runs each case in parallel with others, see [testing.T.Parallel]. Cases share what their table shares:
// objects are copied before they are used, values in Metadata and the variables of functions are not.
//
// As always with parallel tests, the cases of a suite have not run yet when Run returns. Undo what they need with
// [testing.T.Cleanup], which waits for them, not with defer. AdditionalReconciles remain one after the other.
func Parallel() RunOption {
	return runOption(func(options *runOptions) { options.parallel = true })
}

// Realistic sets the field of this name for all configs of all cases.
func Realistic() RunOption {
	return runOption(func(options *runOptions) { options.realistic = true })
}
