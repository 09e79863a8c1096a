// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// accountReconciler gives each namespace a service account.
func accountReconciler(c reconcilers.Config) *reconcilers.ResourceReconciler[*corev1.Namespace] {
	return &reconcilers.ResourceReconciler[*corev1.Namespace]{
		Reconciler: &reconcilers.ChildReconciler[*corev1.Namespace, *corev1.ServiceAccount, *corev1.ServiceAccountList]{
			DesiredChild: func(context.Context, *corev1.Namespace) (*corev1.ServiceAccount, error) {
				return &corev1.ServiceAccount{}, nil
			},
			ReflectChildStatusOnParentWithError: func(
				_ context.Context, _ *corev1.Namespace, _ *corev1.ServiceAccount, err error,
			) error {
				return err // it has no condition to put the error into
			},
			MergeBeforeUpdate: func(_, _ *corev1.ServiceAccount) {},
		},
		Config: c,
	}
}

// testAccounts would be named TestAccounts if it were not an example.
func testAccounts(t *testing.T) {
	rtesting.ReconcilerTests{
		"a change of the account triggers its namespace": {
			Request: reconcilers.Request{NamespacedName: types.NamespacedName{Name: "does-not-exist"}},
			ExpectWiring: &rtesting.Wiring{
				For:     []rtesting.Watch{{Object: &corev1.Namespace{}}},
				Owns:    []rtesting.Watch{{Object: &corev1.ServiceAccount{}}},
				Tracks:  []rtesting.Watch{{Object: &corev1.ServiceAccount{}}},
				Indexes: []rtesting.Index{{Object: &corev1.ServiceAccount{}, Field: "trueup.dev/controller-uid"}},
			},
		},
	}.Run(t, clientgoscheme.Scheme, func(
		_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config,
	) reconcile.Reconciler {
		return accountReconciler(c)
	})
}

func ExampleWiring() {
	var t *testing.T // of your own test function
	testAccounts(t)
}
