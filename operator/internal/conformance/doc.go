// SPDX-License-Identifier: Apache-2.0

// Package conformance shows that handlers of package operator do not have the weaknesses that event-driven handlers are
// known for: stale retries, lost deletions, timers that multiply, failures that nobody hears of. Each test is named
// after the one that it refutes.
//
// Where the API matters the tests run on a real one, which package sandbox starts. Where time does they run in a bubble
// of testing/synctest, with a manager, caches and queues as in production, on an API in memory.
package conformance
