// SPDX-License-Identifier: Apache-2.0

// Package convergence has the tests that put the reconcilers of this module under package converge: every fault at
// every point of a life of a resource. There is nothing in it but tests, because converge is above what they test.
package convergence
