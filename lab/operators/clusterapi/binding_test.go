// SPDX-License-Identifier: Apache-2.0

package clusterapi_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterresourcesetbinding"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
	"trueup.dev/lab/operators"
)

func TestClusterResourceSetBinding(t *testing.T) {
	binding := &addonsv1.ClusterResourceSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	binding.Spec.ClusterName = "c"
	operators.Check(t, operators.Scenario{Module: module, Controller: "resource binding", Converge: converge.Scenario{
		Scheme: kinds(), For: binding, CRDs: crds(), Given: []client.Object{cluster()},
		Setup: func(mgr manager.Manager) error {
			r := &clusterresourcesetbinding.Reconciler{Client: mgr.GetClient()}
			return r.SetupWithManager(processContext(mgr), mgr, controller.Options{})
		},
		Steps: converge.Steps(converge.Apply(binding), converge.Settle(), converge.Delete(cluster()), converge.Settle()),
	}})
}
