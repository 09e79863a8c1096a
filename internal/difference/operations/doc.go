// SPDX-License-Identifier: Apache-2.0

// Package operations normalizes the operations of a JSON patch: the values have the Go types that encoding/json decodes
// to, and the order is deterministic.
//
// Patches are computed from two documents by iterating over maps, so operations on different fields have a different
// order each time. The order has no effect if no operation is on a value that contains the value of another one, and if
// no indexes of lists shift.
package operations
