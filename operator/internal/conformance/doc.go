// SPDX-License-Identifier: Apache-2.0

// Package conformance shows that the handlers of package operator do not have the known weaknesses of event-driven
// handlers: stale retries, lost deletions, multiplying timers, unreported failures. Each test is named after the
// weakness that it refutes.
//
// Tests that depend on the API run on a real API server, which package sandbox starts. Tests that depend on time run
// in a testing/synctest bubble, with a manager, caches and queues as in production, and an API server in memory.
package conformance
