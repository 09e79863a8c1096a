// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

func ExampleParallel() {
	var t *testing.T // of your own test function
	tests := rtesting.ReconcilerTests{
		"nothing happens":      {},
		"and nothing here too": {},
	}
	tests.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return expiryReconciler(c)
	}, rtesting.Parallel())
}

// The same table, with and without.
func ExampleRealistic() {
	var t *testing.T // of your own test function
	tests := rtesting.ReconcilerTests{
		"old secrets are deleted": {
			GivenObjects: []client.Object{&corev1.Secret{}},
		},
	}
	factory := func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return expiryReconciler(c)
	}
	t.Run("in memory", func(t *testing.T) { tests.Run(t, scheme, factory) })
	t.Run("realistic", func(t *testing.T) { tests.Run(t, scheme, factory, rtesting.Realistic()) })
}
