// SPDX-License-Identifier: Apache-2.0

// Package external is for reconcilers with effects outside of Kubernetes.
//
// A plan, see package [trueup.dev/plan], executes reconcilers and keeps their writes to the Kubernetes API in memory.
// It cannot do that with calls of a cloud or of a database. Reconcilers guard such calls with [Announce].
package external
