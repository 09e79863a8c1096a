// SPDX-License-Identifier: Apache-2.0

// Package fidelity compares the API server in memory of package apiserver with a real one.
//
// A [Generator] makes a [Sequence] of operations from a seed: creates, reads, updates, patches of all types, applies,
// deletions, of few objects and kinds, so that operations meet each other. A sequence is data. [Server.Run] runs it on
// a server through a client and notes everything it shows in a [Transcript]: the object after each call, the error with
// all its details, lists page by page, the events of all objects, and in the end what is stored. [Compare] looks for
// divergences between two transcripts. An [Explorer] does that with thousands of sequences, counts divergences by
// [Divergence.Signature], and makes a sequence that shows one as short as it can be.
//
// # What is compared
//
// Everything but what a server makes up, which is given a name by the order in which it was seen, wherever it occurs,
// also in texts: UIDs, generated names, the addresses and ports of services. Resource versions must be in the same
// relation to each other, older, the same or newer, in all objects and events of all kinds. Times must be the same to
// half a minute, which periods of grace are multiples of. The version of a list is that of a store with other users,
// and not compared; neither are the kind and API version of a status, which depend on the encoding.
//
// # Differences
//
// These are known. Each is a rule of [KnownDifferences] that excuses no more than it says, and a test shows for each
// that it still is one.
//
//   - managed-fields: objects have managed fields only once something was applied to them. Keeping them costs more than
//     all the rest of a write, and reconcilers do not look at them. They are those of a real server from then on.
//     Before, clients can neither reset them nor send older ones.
//   - typed-content: custom resources with a Go type are stored as that type. What the type cannot tell apart, such as
//     an empty list that is omitted and none, or 1024Mi and 1Gi, is the same: reconcilers with the type cannot tell it
//     apart either.
//   - pod-update-diff: the error of an update of a pod that changes what cannot change shows a diff of internal types
//     in its text.
//   - values-in-errors: where the error of a built-in kind shows a struct, a real server shows the one that it uses
//     internally, with other names of fields.
//   - node-ports-again: a service that has had node ports, and none after that, has the same ones when it needs some
//     again.
//   - duplicate-node-ports: an update that gives a service with a node port several ports without names is invalid; a
//     real server has an internal error.
//   - apply-types: a configuration with fields that its kind does not have is refused with all that is wrong. A real
//     server visits its fields in random order, and stops at the first one that is unknown.
//   - nameless-service: a service without a name is refused with another text, by the allocator of addresses.
//   - metadata-deletion: the client of a real server cannot read the answer to the deletion of a metadata-only object
//     whose kind is not in the scheme, if the object stays because of finalizers; it returns an error after it has
//     deleted.
//
// # Garbage
//
// A real garbage collector does several things at a time, and what comes of it can depend on which is done first.
// Dependents that do not block an owner that is kept by finalizers go with it if they are looked at before it is
// released, and stay if after. An object with two owners of which one owns the other loses a reference, or both owners.
// An object in a circle of owners is unblocked; then its deletion fails, because it has just been changed, and is tried
// again some milliseconds later, when its owner may be gone already: it is deleted in the foreground or in the
// background. The server in memory lets its user decide what is done next, so the test compares what a real collector
// leaves with all that can be left.
//
// One thing is different: an object that comes to be owned by one that waits for its dependents is collected at once. A
// real collector does not look at it before another dependent of that owner is gone.
//
// # What is not covered
//
// Sequences leave out what the server in memory does not claim to know:
//
//   - built-in validation but for the rules in the catalog of the tests, in the field Faults;
//   - kinds that are not in the catalog, versions of a kind and conversion between them;
//   - several clients at the same time;
//   - evictions with preconditions: a real server tries those that fail again for minutes;
//   - addresses and ports of services that clients choose, and services and jobs made from what was read of others;
//   - what breaks a real server: an update that makes a service an ExternalName with a cluster IP ends in a panic of
//     kube-apiserver 1.37.1.
package fidelity
