// SPDX-License-Identifier: Apache-2.0

//go:build race

package main

// raceDetector reports whether the tests run with the race detector. The command is built the same way.
const raceDetector = true
