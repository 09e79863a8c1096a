// SPDX-License-Identifier: Apache-2.0

// Package wiring observes what a reconciler asks of a manager when it is set up: which kinds it watches and how their
// events lead to requests, which indexes it needs, and which options its controllers have.
//
// [Observe] runs a set-up with a manager that needs no API server, and then starts each controller that the set-up has
// added, with a queue that nothing is taken from. Once the caches have all event handlers of the controller, it sends
// them made-up events and classifies each watch by the requests that result. The reconciler is never called.
//
//   - manager.go, cache.go: the manager and its clusters, whose caches record event handlers and indexes
//   - controller.go, queue.go: starting a controller, and its queue
//   - probe.go, change.go: the made-up events, and what the requests say about a watch
package wiring
