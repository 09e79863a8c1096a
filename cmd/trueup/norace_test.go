// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

// raceDetector tells whether the tests run with the race detector, and so shall the command.
const raceDetector = false
