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
	"trueup.dev/lab/operators"
)

func TestMachineSet(t *testing.T) {
	operators.Check(t, operators.Scenario{
		Module: module, Controller: "MachineSet", Converge: machineSets(), Finding: &operators.Finding{
			Oracle: converge.OracleQuiescence, Cause: converge.CauseNotQuiet, Server: "TestMachineSet_server",
			Observed: "The creation of a Machine took effect, but the request timed out. The MachineSet deleted the " +
				"infrastructure machine that it had created for the Machine, which remained. All further reconciles of the " +
				"MachineSet failed because the infrastructure machine did not exist.",
		},
	})
}

// TestMachineSetRest searches for more than what TestMachineSet finds.
func TestMachineSetRest(t *testing.T) {
	s := machineSets()
	s.Without = map[converge.Fault]string{converge.FaultTimeoutApplied: "see TestMachineSet"}
	for _, fault := range []converge.Fault{converge.FaultChildDeleted, converge.FaultDeleted} {
		s.Except = append(s.Except, converge.Exception{
			Fault: fault, Object: infrastructureMachine("m"), Reason: "a lost machine of a provider is not replaced",
		})
	}
	operators.Check(t, operators.Scenario{Module: module, Controller: "MachineSet, other faults", Converge: s})
}

func machineSets() converge.Scenario {
	return converge.Scenario{
		Scheme: kinds(), For: machineSet(), CRDs: crds(infrastructure()...),
		Given: append(infrastructure(), startingCluster(), template()),
		Setup: func(mgr manager.Manager) error {
			r := &machineset.Reconciler{
				Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: clustercache.NewFakeEmptyClusterCache(),
			}
			return r.SetupWithManager(processContext(mgr), mgr, controller.Options{})
		},
		World: []converge.Actor{{Name: "Machine controller", For: &clusterv1.Machine{}, Act: finishDeletion}},
		Steps: converge.Lifecycle(machineSet(), func(s *clusterv1.MachineSet) { s.Spec.Replicas = new(int32(2)) }),
		// The deprecated conditions describe the last scaling.
		Masks: []converge.Mask{{Object: machineSet(), Field: "status.deprecated"}},
		Off:   map[converge.Oracle]string{converge.OracleLeaks: "the goroutine of a cache ends with the program"},
	}
}

// finishDeletion does for a deleted Machine what its controller does.
func finishDeletion(ctx context.Context, c client.Client, obj client.Object) error {
	if obj.GetDeletionTimestamp().IsZero() || len(obj.GetFinalizers()) == 0 {
		return nil
	}
	infrastructure := infrastructureMachine(obj.(*clusterv1.Machine).Spec.InfrastructureRef.Name)
	if err := c.Delete(ctx, infrastructure); client.IgnoreNotFound(err) != nil {
		return err
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

func infrastructureMachine(name string) *unstructured.Unstructured {
	return builder.InfrastructureMachine("default", name).Build()
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
