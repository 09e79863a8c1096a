// SPDX-License-Identifier: Apache-2.0

package state

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/memapi/workloads"
)

// Workload is a Deployment or a StatefulSet.
type Workload struct {
	Name                 string
	Generation, Observed int64
	Wanted, Available    int32
}

// WorkloadOf returns the workload that an object is, if it is one.
func WorkloadOf(kind schema.GroupVersionKind, obj client.Object) (Workload, bool) {
	w := Workload{Name: kind.Kind + " " + phrase.Name(client.ObjectKeyFromObject(obj)), Generation: obj.GetGeneration()}
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		w.Observed, w.Available = obj.Status.ObservedGeneration, obj.Status.AvailableReplicas
		w.Wanted = workloads.Count(obj.Spec.Replicas)
	case *appsv1.StatefulSet:
		w.Observed, w.Available = obj.Status.ObservedGeneration, obj.Status.AvailableReplicas
		w.Wanted = workloads.Count(obj.Spec.Replicas)
	default:
		return w, false
	}
	return w, true
}
