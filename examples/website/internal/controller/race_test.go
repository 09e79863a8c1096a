// SPDX-License-Identifier: Apache-2.0

//go:build race

package controller_test

// raceDetector tells whether tests run with the race detector.
const raceDetector = true
