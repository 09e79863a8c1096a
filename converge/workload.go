// SPDX-License-Identifier: Apache-2.0

package converge

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/workloads"
)

// workload is a Deployment or a StatefulSet.
type workload struct {
	name                 string
	generation, observed int64
	wanted, available    int32
}

// workloadOf returns the workload that an object is, if it is one.
func workloadOf(kind schema.GroupVersionKind, obj client.Object) (workload, bool) {
	w := workload{name: kind.Kind + " " + phrase.Name(client.ObjectKeyFromObject(obj)), generation: obj.GetGeneration()}
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		w.observed, w.available = obj.Status.ObservedGeneration, obj.Status.AvailableReplicas
		w.wanted = workloads.Count(obj.Spec.Replicas)
	case *appsv1.StatefulSet:
		w.observed, w.available = obj.Status.ObservedGeneration, obj.Status.AvailableReplicas
		w.wanted = workloads.Count(obj.Spec.Replicas)
	default:
		return w, false
	}
	return w, true
}
