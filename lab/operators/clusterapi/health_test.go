// SPDX-License-Identifier: Apache-2.0

package clusterapi_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
	"trueup.dev/lab/operators"
)

// Machines that do not get a Node in time are unhealthy.
func TestMachineHealthCheck(t *testing.T) {
	operators.Check(t, operators.Scenario{Module: module, Controller: "MachineHealthCheck", Converge: converge.Scenario{
		Scheme: kinds(), For: check(), CRDs: crds(), Given: []client.Object{startingCluster(), machine()},
		Setup: func(mgr manager.Manager) error {
			r := &machinehealthcheck.Reconciler{Client: mgr.GetClient(), ClusterCache: clustercache.NewFakeEmptyClusterCache()}
			return r.SetupWithManager(processContext(mgr), mgr, controller.Options{})
		},
		Steps: converge.Lifecycle(check(), func(c *clusterv1.MachineHealthCheck) {
			c.Spec.Checks.NodeStartupTimeoutSeconds = new(int32(120))
		}),
	}})
}

func check() *clusterv1.MachineHealthCheck {
	c := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "h"}}
	c.Spec.ClusterName, c.Spec.Selector.MatchLabels = "c", machine().Labels
	c.Spec.Checks.NodeStartupTimeoutSeconds = new(int32(60))
	return c
}

func machine() *clusterv1.Machine {
	labels := map[string]string{"pool": "a"}
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", Labels: labels}}
	m.Spec.ClusterName, m.Spec.Bootstrap.DataSecretName = "c", new("bootstrap")
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "ExampleMachine", Name: "m",
	}
	return m
}

// startingCluster returns a Cluster whose control plane is not initialized yet.
func startingCluster() *clusterv1.Cluster {
	c := cluster()
	c.Status.Conditions = nil
	return c
}
