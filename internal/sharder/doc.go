// SPDX-License-Identifier: Apache-2.0

// Package sharder is a stand-in for the sharder of github.com/timebertt/kubernetes-controller-sharding. It is for
// the tests of this module and for trueup demo only: do not run it in a cluster.
//
// It follows the same protocol: it takes over Leases that have expired, says on each Lease in which state the shard is,
// drains objects before it moves them away from a shard that is available, and moves the objects of other shards and
// all controlled objects at once. It differs in how it works. It has no webhook, so a new object has no label for a
// moment. It assigns by rendezvous hashing. It lists all objects again and again instead of watching them.
package sharder
