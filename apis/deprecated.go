// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"context"
)

// Manage returns a manager for the conditions of one status. What the manager
// changes carries the time of the wall clock, which a test cannot pin.
//
// Deprecated: use [ConditionSet.ManageWithContext].
func (r ConditionSet) Manage(status ConditionsAccessor) ConditionManager {
	return r.ManageWithContext(context.Background(), status)
}
