// SPDX-License-Identifier: Apache-2.0

// Package ownership decides, from an object in a cache, whether a server-side apply would have an effect: which fields
// an author sets, which of them a field owner owns already, and which other owners they have.
package ownership
