// SPDX-License-Identifier: Apache-2.0

//go:build !race

package operator

// raceDetector tells whether tests run with the race detector, with which they take ten times as long.
const raceDetector = false
