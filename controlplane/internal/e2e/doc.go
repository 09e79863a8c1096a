// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the command trueup-controlplane from outside, as a child process. It does not import package
// controlplane, so its tests build quickly, even with the race detector, while the command is built without it.
//
// The environment variable TRUEUP_CONTROLPLANE sets the path of an existing command. If it is not set, the tests build
// one.
package e2e
