// SPDX-License-Identifier: Apache-2.0

package clusterapi_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterresourceset"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
	"trueup.dev/lab/operators"
)

// The workload cluster is the management cluster here.
func TestClusterResourceSet(t *testing.T) {
	operators.Check(t, operators.Scenario{Module: module, Controller: "ClusterResourceSet", Converge: converge.Scenario{
		Scheme: kinds(), For: set(), CRDs: crds(), Given: []client.Object{cluster(), content()},
		Setup: func(mgr manager.Manager) error {
			connected := clustercache.NewFakeClusterCache(mgr.GetClient(), client.ObjectKeyFromObject(cluster()))
			r := &clusterresourceset.Reconciler{Client: mgr.GetClient(), ClusterCache: connected}
			return r.SetupWithManager(processContext(mgr), mgr, controller.Options{}, mgr.GetCache())
		},
		Off: map[converge.Oracle]string{converge.OracleDeletion: "what was applied stays in the workload cluster"},
		Without: map[converge.Fault]string{
			converge.FaultChildDeleted: "the workload cluster is not watched",
			converge.FaultDrift:        "the workload cluster is not watched",
		},
		Steps: converge.Lifecycle(set(), func(s *addonsv1.ClusterResourceSet) { s.Labels = map[string]string{"a": "b"} }),
	}})
}

func set() *addonsv1.ClusterResourceSet {
	s := &addonsv1.ClusterResourceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
	s.Spec.ClusterSelector.MatchLabels = cluster().Labels
	s.Spec.Resources = []addonsv1.ResourceRef{{Name: content().Name, Kind: "ConfigMap"}}
	s.Spec.Strategy = string(addonsv1.ClusterResourceSetStrategyReconcile)
	return s
}

func content() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cni"}, Data: map[string]string{
		"a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}, data: {a: b}}",
	}}
}
