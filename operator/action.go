// SPDX-License-Identifier: Apache-2.0

package operator

import "strconv"

// ReconcileAction is what has happened to a resource since it was last handled with success.
type ReconcileAction int

// The actions. What they mean in detail is told by [WithEdge].
const (
	// ReconcileActionUnknown is the zero value. No handler is called with it.
	ReconcileActionUnknown ReconcileAction = iota
	// ReconcileActionCreated is for a resource that has not been handled before.
	ReconcileActionCreated
	// ReconcileActionUpdated is for a resource that has changed since.
	ReconcileActionUpdated
	// ReconcileActionDeleted is for a resource that is gone, or that is being deleted and waits for its finalizer to be
	// cleared.
	ReconcileActionDeleted
	// ReconcileActionResynced is for a resource that was handled before, by an earlier process perhaps, and may or may not
	// have changed since.
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

// ResourceAction is an action in the words of an API.
type ResourceAction string

// The actions in the words of an API.
const (
	ResourceActionCreate ResourceAction = "CREATE"
	ResourceActionUpdate ResourceAction = "UPDATE"
	ResourceActionDelete ResourceAction = "DELETE"
	ResourceActionResync ResourceAction = "RESYNC"
)

var resourceActions = [...]ResourceAction{
	"", ResourceActionCreate, ResourceActionUpdate, ResourceActionDelete, ResourceActionResync,
}

// ResourceActionFromReconcileAction returns the same action in the words of an API, "" for an unknown one.
func ResourceActionFromReconcileAction(action ReconcileAction) ResourceAction {
	if action < 0 || int(action) >= len(resourceActions) {
		return ""
	}
	return resourceActions[action]
}

// ResourceActionFromReconcile is [ResourceActionFromReconcileAction], under its shorter name.
func ResourceActionFromReconcile(action ReconcileAction) ResourceAction {
	return ResourceActionFromReconcileAction(action)
}

// ReconcileActionFromResourceAction is the reverse of [ResourceActionFromReconcileAction]. What is none of the four is
// [ReconcileActionUnknown].
func ReconcileActionFromResourceAction(action ResourceAction) ReconcileAction {
	for i, a := range resourceActions {
		if i > 0 && a == action {
			return ReconcileAction(i)
		}
	}
	return ReconcileActionUnknown
}
