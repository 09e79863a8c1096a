// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the command trueup-controlplane from outside, as a child process. It does not import package controlplane, so that
// its tests build quickly, also with the race detector, while the command is built the normal way.
//
// The environment variable TRUEUP_CONTROLPLANE names a command that is built already; without it the tests build one.
package e2e
