// SPDX-License-Identifier: Apache-2.0

//go:build race

package operator

// raceDetector reports whether the race detector is enabled, which makes tests ten times slower.
const raceDetector = true
