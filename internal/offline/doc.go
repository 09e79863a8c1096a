// SPDX-License-Identifier: Apache-2.0

// Package offline provides the parts of a controller-runtime manager that need no API server.
//
// A test sets up a reconciler with a [Manager], whose clients and caches it provides.
package offline
