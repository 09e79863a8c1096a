// SPDX-License-Identifier: Apache-2.0

//go:build !race

package convergence

// raceDetector reports whether tests run with the race detector.
const raceDetector = false
