// SPDX-License-Identifier: Apache-2.0

package operator

import "strconv"

// ReconcileAction is the change of a resource since it was last handled successfully.
type ReconcileAction int

// The actions. [WithEdge] documents when each of them applies.
const (
	// ReconcileActionUnknown is the zero value. Handlers are never called with it.
	ReconcileActionUnknown ReconcileAction = iota
	// ReconcileActionCreated is for a resource that has not been handled before.
	ReconcileActionCreated
	// ReconcileActionUpdated is for a resource that has changed since it was last handled.
	ReconcileActionUpdated
	// ReconcileActionDeleted is for a resource that no longer exists, or that is being deleted and waits for its
	// finalizer to be removed.
	ReconcileActionDeleted
	// ReconcileActionResynced is for a resource that was handled before, possibly by an earlier process. It may or may
	// not have changed since.
	ReconcileActionResynced
)

var actionNames = [...]string{"Unknown", "Created", "Updated", "Deleted", "Resynced"}

// String returns the name of the action.
func (a ReconcileAction) String() string {
	if a < 0 || int(a) >= len(actionNames) {
		return "ReconcileAction(" + strconv.Itoa(int(a)) + ")"
	}
	return actionNames[a]
}

// ResourceAction is an action in the notation of an API.
type ResourceAction string

// The actions in the notation of an API.
const (
	ResourceActionCreate ResourceAction = "CREATE"
	ResourceActionUpdate ResourceAction = "UPDATE"
	ResourceActionDelete ResourceAction = "DELETE"
	ResourceActionResync ResourceAction = "RESYNC"
)

var resourceActions = [...]ResourceAction{
	"", ResourceActionCreate, ResourceActionUpdate, ResourceActionDelete, ResourceActionResync,
}

// ResourceActionFromReconcileAction returns the ResourceAction for action, or "" if action is unknown.
func ResourceActionFromReconcileAction(action ReconcileAction) ResourceAction {
	if action < 0 || int(action) >= len(resourceActions) {
		return ""
	}
	return resourceActions[action]
}

// ReconcileActionFromResourceAction is the inverse of [ResourceActionFromReconcileAction]. It returns
// [ReconcileActionUnknown] for any other value.
func ReconcileActionFromResourceAction(action ResourceAction) ReconcileAction {
	for i, a := range resourceActions {
		if i > 0 && a == action {
			return ReconcileAction(i)
		}
	}
	return ReconcileActionUnknown
}
