// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"context"
	"slices"

	"trueup.dev/internal/engine/observation"
	rtime "trueup.dev/time"
)

// ConditionSet describes the conditions of a kind of resource: the happy condition, which is the overall result, and
// the dependents from which it is derived. It is immutable. Declare one per kind as a package variable.
type ConditionSet struct {
	happyType   string
	happyReason string
	dependents  []string
}

// NewLivingConditionSet returns a set for resources that reach a state and stay in it. The happy condition is Ready,
// with reason Ready if it is True.
//
// d are the types of the dependents. Repeated ones count once, and the happy
// type is not a dependent of itself.
func NewLivingConditionSet(d ...string) ConditionSet {
	return NewLivingConditionSetWithHappyReason(ConditionReady, d...)
}

// NewLivingConditionSetWithHappyReason is [NewLivingConditionSet] with another reason for the happy condition if it is
// True.
func NewLivingConditionSetWithHappyReason(happyReason string, d ...string) ConditionSet {
	return newConditionSet(ConditionReady, happyReason, d)
}

// NewBatchConditionSet returns a set for resources that run to completion. The happy condition is Succeeded, with
// reason Succeeded if it is True.
//
// d are the types of the dependents. Repeated ones count once, and the happy
// type is not a dependent of itself.
func NewBatchConditionSet(d ...string) ConditionSet {
	return NewBatchConditionSetWithHappyReason(ConditionSucceeded, d...)
}

// NewBatchConditionSetWithHappyReason is [NewBatchConditionSet] with another reason for the happy condition if it is
// True.
func NewBatchConditionSetWithHappyReason(happyReason string, d ...string) ConditionSet {
	return newConditionSet(ConditionSucceeded, happyReason, d)
}

func newConditionSet(happyType, happyReason string, dependents []string) ConditionSet {
	set := ConditionSet{happyType: happyType, happyReason: happyReason}
	for _, t := range dependents {
		if t != happyType && !slices.Contains(set.dependents, t) {
			set.dependents = append(set.dependents, t)
		}
	}
	return set
}

// ManageWithContext returns a manager for the conditions of one status. Changed conditions get the time of the context,
// see the time package, so all changes of one reconcile request have the same time. Within a controller, a condition of
// the reconciled resource also gets the generation of the resource as its observedGeneration, unless it is set
// explicitly.
//
// With a nil status the manager finds no conditions and changes none.
func (r ConditionSet) ManageWithContext(ctx context.Context, status ConditionsAccessor) ConditionManager {
	return &conditionManager{
		set: r, status: status, now: rtime.RetrieveNow(ctx), observation: observation.Of(ctx, status),
	}
}
