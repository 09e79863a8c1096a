// SPDX-License-Identifier: Apache-2.0

// Package fidelity compares the in-memory API server of package memapi with a real one.
//
// A [Generator] makes a [Sequence] of operations from a seed: creates, reads, updates, patches of all types, applies
// and deletions, of few objects and kinds, so that operations affect each other. Some are HTTP requests that no client
// sends: other media types, bodies of another kind or without a name, invalid options. A sequence is data.
// [Server.Run] runs it on a server through a client and records everything that the server returns in a [Transcript]:
// the object after each call, the error with all its details, lists page by page, the events of all objects, and the
// objects at the end. [Compare] returns the divergences between two transcripts. An [Explorer] does that with thousands
// of sequences, counts divergences by [Divergence.Signature], and shrinks a sequence that shows one.
//
// # What is compared
//
// Everything is compared. Values that a server generates are first replaced by a name for the order in which they were
// seen, wherever they occur, also in texts: UIDs, generated names, addresses and ports of services. Resource versions
// must have the same relation to each other, older, equal or newer, in all objects and events of all kinds. Times must
// be equal up to half a minute; grace periods are multiples of that. The version of a list is the version of a store
// with other users, and is not compared; neither are the kind and API version of a status, which depend on the
// encoding.
//
// # Differences
//
// These differences are known. Each is a rule of [KnownDifferences] that excuses no more than it describes. A test
// shows for each that it still exists.
//
//   - managed-fields: objects have managed fields only after something was applied to them. Keeping them costs more
//     than the rest of a write, and reconcilers do not use them. After the first apply they are the managed fields of a
//     real server. Before that, clients can neither reset them nor send older ones.
//   - typed-content: custom resources with a Go type are stored as that type. Values that the type cannot distinguish
//     are equal, such as an empty list that is omitted and no list, or 1024Mi and 1Gi: reconcilers with the type cannot
//     distinguish them either.
//   - pod-update-diff: the error of an update of a pod that changes immutable fields contains a diff of internal types.
//   - values-in-errors: where the error of a built-in kind contains a struct, a real server shows its internal type,
//     with other names of fields. Where it quotes an object after a patch, the order of fields differs.
//   - node-ports-again: a service that had node ports, and then none, gets the same ones when it needs some again.
//   - duplicate-node-ports: an update that gives a service with a node port several ports without names is invalid; a
//     real server returns an internal error.
//   - apply-types: a configuration with unknown fields is rejected with all errors. A real server visits the fields in
//     random order, and stops at the first unknown one.
//   - nameless-service: a service without a name is rejected with another text, by the allocator of addresses.
//   - metadata-deletion: the client of a real server cannot read the response to the deletion of a metadata-only object
//     whose kind is not in the scheme, if the object stays because of finalizers; it returns an error after the
//     deletion.
//
// # Garbage
//
// A real garbage collector works concurrently, and its result can depend on the order. Dependents that do not block an
// owner with finalizers are deleted with it if they are processed before it is released, and stay otherwise. An object
// with two owners, where one owns the other loses a reference, or both owners. An object in a cycle of owners is
// unblocked; then its deletion fails, because it has just been changed, and is retried some milliseconds later, when
// its owner may no longer exist: it is deleted in the foreground or in the background. The user of the in-memory server
// chooses the next step, so the test compares the result of a real collector with all possible results.
//
// One case is different: an object that gets an owner which waits for its dependents is collected at once. A real
// collector does not process it before another dependent of that owner is deleted.
//
// # What is not covered
//
// Sequences omit what the in-memory server does not implement:
//
//   - built-in validation, except for the rules in the catalog of the tests, in the field Faults;
//   - kinds that are not in the catalog, versions of a kind and conversion between them;
//   - concurrent clients;
//   - evictions with preconditions: a real server retries failing ones for minutes;
//   - addresses and ports of services that clients choose, and services and jobs created from other
//     objects of their kind;
//   - operations that break a real server: an update that makes a service an ExternalName with a cluster IP
//     causes a panic in kube-apiserver 1.37.1.
package fidelity
