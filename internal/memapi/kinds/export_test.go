// SPDX-License-Identifier: Apache-2.0

package kinds

// Equal is for tests, which have a slow one to compare it to.
var Equal = equal
