// SPDX-License-Identifier: Apache-2.0

// Package convergence has the tests that run the reconcilers of this module under package converge, with every fault at
// every injection point in the life of a resource. It has only tests: converge is in a higher layer than the tested
// packages.
package convergence
