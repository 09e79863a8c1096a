// SPDX-License-Identifier: Apache-2.0

// Package clustertest has the tests that run cases on a real Kubernetes API. There is nothing in it but tests; they are
// not beside the code because that package leaves no goroutine behind, and a control plane does.
package clustertest
