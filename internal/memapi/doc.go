// SPDX-License-Identifier: Apache-2.0

// Package memapi is a Kubernetes API server in memory, fast enough to have a new one for each of thousands of runs a
// second.
//
// A [Server] is not a map with a client in front of it: it does what a real one does to a request, in the same order,
// and fails with the same errors.
//
//	server := memapi.New(memapi.Options{Registry: registry, Applier: applier, Seed: 1})
//	c := server.Client("my-controller") // a client.WithWatch
//
// What a kind is like is the registry's business: defaults, validation, what is kept on an update. The server has what
// all kinds have in common: identity, versions, conflicts, finalizers and deletion, namespaces, patches, selections,
// pages, watches, subresources.
//
// There is one count of versions for all kinds. A write that changes nothing is not a version, and nobody hears of it.
// Every version is kept for as long as the server lives: [Server.Events] has all changes, with the object before and
// after, and costs nothing. What is stored is never changed again, so it can be shared; what a client gets is a copy.
//
// The server does nothing by itself and in nobody's absence: it has no goroutines and no timers, and what it makes up
// (names, UIDs) depends on the seed and on what the object is called. The garbage collector and the controller of
// namespaces are separate, as in a cluster: [Server.Garbage] tells what they would do next, and [Server.Collect] does
// it.
//
// Differences from a real server:
//   - Managed fields are kept only of objects that something has been applied to. The first apply makes up for what
//     came before.
//   - There are no admission plugins but the one of namespaces, no authorization, no quotas, and no warnings.
//   - Versions of a kind are kinds of their own.
//   - A watcher that leaves more than a thousand events unread is cut off, and bookmarks come when [Server.Bookmark] is
//     called.
//   - Tokens to continue a list with look different, and one that has expired comes without another to go on with.
//   - Custom objects of a Go type are stored as such: an empty field and none are the same if the type always writes
//     it.
//   - Field validation is that of a request that asks for none: unknown fields are dropped in silence.
package memapi
