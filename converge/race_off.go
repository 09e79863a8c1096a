// SPDX-License-Identifier: Apache-2.0

//go:build !race

package converge

// raceDetector is off.
const raceDetector = false
