// SPDX-License-Identifier: Apache-2.0

// Package external is for reconcilers with effects outside of Kubernetes.
//
// [Resource] is a subreconciler for one external resource, such as a bucket: it creates, observes, updates and deletes
// it, and neither loses nor duplicates it if responses are lost or the controller restarts.
//
// A plan, see package [trueup.dev/plan], executes reconcilers and keeps their writes to the Kubernetes API in memory.
// It cannot do that with calls of a cloud or of a database. Reconcilers guard such calls with [Announce]; a [Resource]
// does that itself.
package external
