// SPDX-License-Identifier: Apache-2.0

//go:build race

package converge

// raceDetector makes runs about ten times as long.
const raceDetector = true
