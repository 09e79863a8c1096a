// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"context"
)

// Manage returns a manager for the conditions of one status. Changed conditions get the time of the wall clock, which a
// test cannot set.
//
// Deprecated: use [ConditionSet.ManageWithContext].
func (r ConditionSet) Manage(status ConditionsAccessor) ConditionManager {
	return r.ManageWithContext(context.Background(), status)
}
