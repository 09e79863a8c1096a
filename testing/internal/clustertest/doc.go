// SPDX-License-Identifier: Apache-2.0

// Package clustertest has the tests that run cases on a real Kubernetes API. It contains only tests. They are not in
// package testing, because the tests of that package must leave no goroutine behind, and a control plane does.
package clustertest
