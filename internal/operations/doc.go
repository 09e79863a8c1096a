// SPDX-License-Identifier: Apache-2.0

// Package operations brings the operations of a JSON patch into one form: values of the Go types that encoding/json decodes to, in an order that does not
// depend on chance.
//
// Patches are made from two documents by going through maps, so operations on different fields come in a different order each time. The order has no effect
// as long as no operation is on a value that another one is inside of, and indexes of lists do not shift.
package operations
