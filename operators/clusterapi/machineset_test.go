// SPDX-License-Identifier: Apache-2.0

package clusterapi_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	"sigs.k8s.io/cluster-api/util/test/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
	"trueup.dev/operators"
)

func TestMachineSet(t *testing.T) {
	operators.Check(t, operators.Scenario{Module: module, Controller: "MachineSet", Converge: converge.Scenario{
		Scheme: kinds(), For: machineSet(), CRDs: crds(infrastructure()...),
		Given: append(infrastructure(), startingCluster(), template()),
		Setup: func(mgr manager.Manager) error {
			r := &machineset.Reconciler{
				Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: clustercache.NewFakeEmptyClusterCache(),
			}
			return r.SetupWithManager(processContext(mgr), mgr, controller.Options{})
		},
		World: []converge.Actor{{Name: "Machine controller", For: &clusterv1.Machine{}, Act: removeFinalizers}},
		Off:   map[converge.Oracle]string{converge.OracleLeaks: "the goroutine of its cache of applied objects ends with the program"},
		Steps: converge.Lifecycle(machineSet(), func(s *clusterv1.MachineSet) { s.Spec.Replicas = new(int32(2)) }),
	}})
}

// removeFinalizers does for deleted objects what their controller does.
func removeFinalizers(ctx context.Context, c client.Client, obj client.Object) error {
	if obj.GetDeletionTimestamp().IsZero() || len(obj.GetFinalizers()) == 0 {
		return nil
	}
	obj.SetFinalizers(nil)
	return c.Update(ctx, obj)
}

func machineSet() *clusterv1.MachineSet {
	s := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
	s.Spec.ClusterName, s.Spec.Replicas = cluster().Name, new(int32(1))
	s.Spec.Selector.MatchLabels = map[string]string{"set": "s"}
	s.Spec.Template.Labels = s.Spec.Selector.MatchLabels
	s.Spec.Template.Spec.ClusterName = cluster().Name
	s.Spec.Template.Spec.Bootstrap.DataSecretName = new("bootstrap")
	s.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: builder.InfrastructureGroupVersion.Group, Kind: builder.GenericInfrastructureMachineTemplateKind, Name: "t",
	}
	return s
}

func template() *unstructured.Unstructured {
	return builder.InfrastructureMachineTemplate("default", "t").Build()
}

// infrastructure has the kinds of a provider. Cluster API reads the versions of its contract from their labels.
func infrastructure() []client.Object {
	return []client.Object{
		builder.GenericInfrastructureMachineCRD.DeepCopy(), builder.GenericInfrastructureMachineTemplateCRD.DeepCopy(),
	}
}
