// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/graph/rbac"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// The test fails if the cases need what the role does not grant.
func ExampleRecordPermissions() {
	var t *testing.T // of your own test function
	role := &rbacv1.ClusterRole{}
	tests := rtesting.ReconcilerTests{
		"nothing happens": {},
	}
	recorder := &rbac.Recorder{}
	tests.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return expiryReconciler(c)
	}, rtesting.RecordPermissions(recorder))
	rtesting.AssertPermissions(t, role.Rules, nil, recorder)
}
