// SPDX-License-Identifier: Apache-2.0

// Package memapi is a Kubernetes API server in memory. Creating one takes microseconds, so that thousands of runs a
// second can have a server each.
//
// A [Server] processes a request like a real API server does, in the same order, and returns the same errors. Comments
// beside the steps name the upstream functions, below k8s.io/apiserver/pkg: functions of handlers are in
// endpoints/handlers, functions of rest in registry/rest, and functions of Store in registry/generic/registry/store.go.
//
//	server := memapi.New(memapi.Options{Registry: registry, Applier: applier, Seed: 1})
//	c := server.Client("my-controller") // a client.WithWatch
//
// The registry defines what differs between kinds: defaults, validation, the fields that an update keeps. The server
// implements what all kinds have in common: identity, versions, conflicts, finalizers and deletion, namespaces,
// patches, selection, pagination, watches, subresources.
//
// All kinds share one counter of resource versions. A write that changes nothing creates no version and no watch event.
// The server keeps all versions: [Server.Events] returns all changes, with the object before and after, at no cost.
// Stored objects are immutable and can be shared. Clients get copies.
//
// The server acts only on requests. It has no goroutines and no timers. Generated names and UIDs depend only on the
// seed and the name of the object. The garbage collector and the namespace controller are separate, as in a cluster:
// [Server.Garbage] returns their next steps, and [Server.Collect] executes one.
//
// Differences from a real server:
//   - Managed fields are kept only for objects that have been applied. The first apply reconstructs earlier managers
//     from the history.
//   - The only built-in admission plugin is that of namespaces. [Options] can have another one. There is no
//     authorization, no quota, and there are no warnings.
//   - Each version of a kind without a definition is a separate kind. Results of a conversion webhook are kept until
//     the object changes. A watch ends when an object cannot be converted; a real server delays it until all objects
//     can be.
//   - A watch ends when its client leaves more than a thousand events unread. Bookmarks are sent when
//     [Server.Bookmark] is called.
//   - Continue tokens have another format, and the error about an expired token contains no new token.
//   - Custom objects are stored in their Go type: a field that the type always writes cannot be absent.
//   - Fields are validated as for a request that does not ask for field validation: unknown fields are dropped without
//     a warning.
package memapi
