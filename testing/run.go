// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"trueup.dev/graph/rbac"
	"trueup.dev/testing/internal/cluster"
)

// RunOption configures how cases run. Options are the last arguments of the Run methods of cases and suites.
type RunOption interface{ applyTo(options *runOptions) }

// runOptions are the settings of RunOptions.
type runOptions struct {
	parallel  bool
	realistic bool
	// permissions records what the main config needs. Optional.
	permissions *rbac.Recorder
	// clusters are the clusters to run on, by the name of the config. Empty for the API in memory.
	clusters map[string]*cluster.Cluster
}

type runOption func(options *runOptions)

func (o runOption) applyTo(options *runOptions) { o(options) }

// Parallel runs each case in parallel with others, see [testing.T.Parallel]. Objects of
// cases are copied before they are used. Values in Metadata and the variables of functions are shared.
//
// As with all parallel tests, Run returns before the cases of a suite have run. Release what they use with
// [testing.T.Cleanup], which waits for them, not with defer. AdditionalReconciles still run one after the other.
func Parallel() RunOption {
	return runOption(func(options *runOptions) { options.parallel = true })
}

// Realistic sets the field of this name for all configs of all cases.
func Realistic() RunOption {
	return runOption(func(options *runOptions) { options.realistic = true })
}
