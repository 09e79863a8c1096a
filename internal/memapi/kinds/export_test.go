// SPDX-License-Identifier: Apache-2.0

package kinds

// Equal exports equal for comparison with the slow implementation.
var Equal = equal
