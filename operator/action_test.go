// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"testing"

	"trueup.dev/operator"
)

func TestActions(t *testing.T) {
	shorter := operator.ResourceActionFromReconcile // the deprecated name
	for _, tc := range []struct {
		action operator.ReconcileAction
		word   operator.ResourceAction
		name   string
	}{
		{operator.ReconcileActionUnknown, "", "Unknown"},
		{operator.ReconcileActionCreated, operator.ResourceActionCreate, "Created"},
		{operator.ReconcileActionUpdated, operator.ResourceActionUpdate, "Updated"},
		{operator.ReconcileActionDeleted, operator.ResourceActionDelete, "Deleted"},
		{operator.ReconcileActionResynced, operator.ResourceActionResync, "Resynced"},
	} {
		equal(t, "name", tc.name, tc.action.String())
		equal(t, tc.name, tc.word, operator.ResourceActionFromReconcileAction(tc.action))
		equal(t, tc.name, tc.word, shorter(tc.action))
		equal(t, "back from "+tc.name, tc.action, operator.ReconcileActionFromResourceAction(tc.word))
	}
	for _, none := range []operator.ReconcileAction{-1, 5} {
		equal(t, "no action", operator.ResourceAction(""), operator.ResourceActionFromReconcileAction(none))
	}
	equal(t, "name of no action", "ReconcileAction(5)", operator.ReconcileAction(5).String())
	equal(t, "no word", operator.ReconcileActionUnknown, operator.ReconcileActionFromResourceAction("PATCH"))
}
