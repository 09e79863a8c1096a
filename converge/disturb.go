// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
)

// disturb does what can go wrong when all is quiet, and returns true if something has.
func (r *run) disturb() bool {
	disturbed := false
	step := types.NamespacedName{Name: fmt.Sprint("step ", r.step+1)}
	if r.meet(site{"quiet", "", step}, setOf(FaultRestart)) == FaultRestart {
		r.log.fault(r, "process", "is ended", FaultRestart)
		r.crash()
		disturbed = true
	}
	for _, i := range slices.Clone(r.process.informers) {
		most := 0
		if r.plan.faults.has(FaultStaleStart) {
			most = min(3, len(r.eventsOf(i.kind)))
		}
		for back := 1; back <= most; back++ {
			at := site{"quiet", i.kind.Kind, types.NamespacedName{Namespace: step.Name, Name: fmt.Sprint(back, " back")}}
			if r.meet(at, setOf(FaultStaleStart)) == FaultStaleStart {
				r.log.fault(
					r,
					"process",
					fmt.Sprintf("is ended, and begins with %s of %s ago", i.kind.Kind, plural(back, "event")),
					FaultStaleStart,
				)
				r.crash()
				r.stale = append(r.stale, staleStart{i.kind, back})
				disturbed = true
			}
		}
	}
	for _, kind := range r.server.Kinds() {
		for _, obj := range r.server.List(kind) {
			if !r.own[obj.GetUID()] || obj.GetDeletionTimestamp() != nil || ended(obj) {
				continue
			}
			key := client.ObjectKeyFromObject(obj)
			faults := setOf(FaultChildDeleted, FaultDrift)
			if a := r.actorFor(kind); a != nil && a.restores {
				if w, ok := workloadOf(kind, obj); ok && w.available > 0 {
					faults |= setOf(FaultFlap)
				}
			}
			switch r.meet(site{"quiet", kind.Kind, keyOf(obj)}, faults) {
			case FaultChildDeleted:
				r.disturbObject(kind, key, "delete", FaultChildDeleted, func(obj client.Object) error {
					return r.other.Delete(r.ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground))
				})
				disturbed = true
			case FaultFlap:
				r.disturbObject(kind, key, "has no replica available", FaultFlap, r.unavailable)
				if a := r.actorFor(kind); slices.Contains(a.due, key) {
					a.due = slices.DeleteFunc(a.due, func(due types.NamespacedName) bool { return due == key })
					a.late = append(a.late, key)
					r.flapped = thingOf(kind, obj)
				}
				disturbed = true
			case FaultDrift:
				r.disturbObject(kind, key, "change", FaultDrift, r.drift)
				disturbed = true
			}
		}
	}
	return disturbed
}

// eventsOf lists the events of a kind.
func (r *run) eventsOf(kind schema.GroupVersionKind) []memapi.Event {
	return slices.DeleteFunc(slices.Clone(r.server.Events(0)), func(e memapi.Event) bool { return e.Kind != kind })
}

func (r *run) disturbObject(
	kind schema.GroupVersionKind, key types.NamespacedName, verb string, fault Fault, do func(client.Object) error,
) {
	defer r.as("somebody")()
	r.made.explain(r, kind, key)
	obj := r.withKind(r.server.Get(kind, key), kind)
	err := do(obj)
	if err != nil {
		r.missed()
	}
	r.log.fault(r, "somebody", verb+" "+kind.Kind+" "+nameOf(key)+failure(err), fault)
}

// actorFor returns the actor that acts on a kind, if there is one.
func (r *run) actorFor(kind schema.GroupVersionKind) *actorState {
	for _, a := range r.actors {
		if a.kind == kind {
			return a
		}
	}
	return nil
}

// unavailable has a workload have no replica that is.
func (r *run) unavailable(obj client.Object) error {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		obj.Status.ReadyReplicas, obj.Status.AvailableReplicas, obj.Status.UnavailableReplicas = 0, 0, obj.Status.Replicas
		for i := range obj.Status.Conditions {
			if c := &obj.Status.Conditions[i]; c.Type == appsv1.DeploymentAvailable {
				c.Status, c.Reason, c.LastTransitionTime, c.LastUpdateTime =
					corev1.ConditionFalse, "MinimumReplicasUnavailable", metav1.Now(), metav1.Now()
			}
		}
	case *appsv1.StatefulSet:
		obj.Status.ReadyReplicas, obj.Status.AvailableReplicas = 0, 0
	}
	return r.other.Status().Update(r.ctx, obj)
}

// drift changes an object a little: what it was created with should come back.
func (r *run) drift(obj client.Object) error {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		for _, key := range sortedKeys(obj.Data) {
			obj.Data[key] += " drifted"
			return r.other.Update(r.ctx, obj)
		}
	case *corev1.Secret:
		for _, key := range sortedKeys(obj.Data) {
			obj.Data[key] = append(obj.Data[key], " drifted"...)
			return r.other.Update(r.ctx, obj)
		}
	case *appsv1.Deployment:
		obj.Spec.Replicas = new(count(obj.Spec.Replicas) + 1)
		return r.other.Update(r.ctx, obj)
	case *appsv1.StatefulSet:
		obj.Spec.Replicas = new(count(obj.Spec.Replicas) + 1)
		return r.other.Update(r.ctx, obj)
	}
	for _, key := range sortedKeys(obj.GetLabels()) {
		labels := maps.Clone(obj.GetLabels())
		delete(labels, key)
		obj.SetLabels(labels)
		return r.other.Update(r.ctx, obj)
	}
	return nil
}
