// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
	rtesting "trueup.dev/testing"
)

// The same table runs in memory and on a real API.
func ExampleOnCluster() {
	var t *testing.T // of your own test function
	tests := rtesting.ReconcilerTests{
		"fresh secrets are kept": {
			GivenObjects: []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fresh"}}},
		},
	}
	factory := func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return expiryReconciler(c)
	}
	t.Run("in memory", func(t *testing.T) { tests.Run(t, scheme, factory) })
	t.Run("on a cluster", func(t *testing.T) {
		api := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{"../config/crd/bases"}})
		tests.Run(t, scheme, factory, rtesting.OnCluster(api.RESTConfig()))
	})
}

// A reconciler that works with two clusters needs two options.
func ExampleOnAdditionalCluster() {
	var t *testing.T // of your own test function
	tests := rtesting.ReconcilerTests{
		"secrets are looked for in the other cluster, too": {
			AdditionalConfigs: map[string]rtesting.ExpectConfig{
				"vault": {
					GivenObjects: []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fresh"}}},
				},
			},
		},
	}
	here := sandbox.ForTest(t, sandbox.TestOptions{})
	there, err := sandbox.Start(t.Context(), sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := there.Stop(); err != nil {
			t.Error(err)
		}
	})
	tests.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return expiryReconciler(c)
	}, rtesting.OnCluster(here.RESTConfig()), rtesting.OnAdditionalCluster("vault", there.RESTConfig()))
}
