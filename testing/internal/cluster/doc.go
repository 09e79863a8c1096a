// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the cases of table tests against the API of a real cluster, without a change to the cases.
//
//	turn, err := cluster.TakeTurn(ctx, clusters) // waits for other cases on these clusters
//	defer turn.End()
//	api, err := turn.Open(cluster.Case{Name: cluster.DefaultName, Scheme: scheme, GivenObjects: objects})
//	// run the case with api.Client() and api.Reader()
//	err = api.Close() // removes the objects of the case
//
// A case has fixed UIDs, resource versions, generations and timestamps, which only an API in memory can store. So the
// package translates: a record of each object of the case (record.go) knows its metadata on both sides. "Shown" is
// what the case sees, "hidden" or "real" is what the cluster sees:
//
//   - given.go, create.go and close.go create the given objects and remove all objects of the case.
//   - read.go hides the objects that the case does not have.
//   - client.go, subresource.go, patch.go and patch_hide.go translate writes, owners.go their owner references.
//   - change.go keeps writes of other clients, such as the controllers of the cluster, from the case.
//   - normalize.go removes the fields that the server added, such as defaults, before objects are compared; notes.go
//     lists them when a case fails.
//   - namespace.go and host.go share a cluster and its namespaces between cases.
package cluster
