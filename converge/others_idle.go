// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/memapi/workloads"
)

// disturb injects the faults of objects when the controller is idle, and reports whether it has injected one.
func (o *otherClient) disturb() bool {
	r := o.run
	disturbed := false
	for _, kind := range r.world.server.Kinds() {
		for _, obj := range r.world.server.List(kind) {
			if !r.world.own[obj.GetUID()] || obj.GetDeletionTimestamp() != nil || workloads.Ended(obj) {
				continue
			}
			if o.disturbObject(kind, obj) {
				disturbed = true
			}
		}
	}
	return disturbed
}

func (o *otherClient) disturbObject(kind schema.GroupVersionKind, obj client.Object) bool {
	r := o.run
	key := client.ObjectKeyFromObject(obj)
	faults := inject.SetOf(FaultChildDeleted, FaultDrift)
	actor := r.actors.of(kind)
	if w, ok := state.WorkloadOf(kind, obj); ok && actor != nil && actor.restores && w.Available > 0 {
		faults |= inject.SetOf(FaultFlap)
	}
	switch r.faults.at(inject.Site{Act: "quiet", Kind: kind.Kind, Key: r.world.generated.Key(key)}, faults) {
	case FaultChildDeleted:
		o.change(kind, key, "delete", FaultChildDeleted, func(obj client.Object) error {
			return r.world.other.Delete(r.ctx, obj, background)
		})
	case FaultFlap:
		o.change(kind, key, "has no available replica", FaultFlap, o.makeUnavailable)
		if actor.delay(key) {
			r.oracles.status.isFlapping(kind, obj)
		}
	case FaultDrift:
		o.change(kind, key, "change", FaultDrift, o.drift)
	default:
		return false
	}
	return true
}

// change changes a stored object.
func (o *otherClient) change(
	kind schema.GroupVersionKind, key types.NamespacedName, verb string, fault Fault, do func(client.Object) error,
) {
	r := o.run
	defer r.watches.forward()
	r.oracles.duplicates.explain(kind, key)
	err := do(withKind(r.world.server.Get(kind, key), kind))
	if err != nil {
		r.faults.withdraw(r.faults.last)
	}
	r.trace.fault(phrase.AnotherClient, verb+" "+kind.Kind+" "+phrase.Name(key)+phrase.After(err), fault)
}

// makeUnavailable sets the status of a workload without any available replica.
func (o *otherClient) makeUnavailable(obj client.Object) error {
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
	return o.run.world.other.Status().Update(o.run.ctx, obj)
}

// drift changes one field of an object that a reconciler sets.
func (o *otherClient) drift(obj client.Object) error {
	update := func() error { return o.run.world.other.Update(o.run.ctx, obj) }
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		for _, key := range phrase.SortedKeys(obj.Data) {
			obj.Data[key] += " drifted"
			return update()
		}
	case *corev1.Secret:
		for _, key := range phrase.SortedKeys(obj.Data) {
			obj.Data[key] = append(obj.Data[key], " drifted"...)
			return update()
		}
	case *appsv1.Deployment:
		obj.Spec.Replicas = new(workloads.Count(obj.Spec.Replicas) + 1)
		return update()
	case *appsv1.StatefulSet:
		obj.Spec.Replicas = new(workloads.Count(obj.Spec.Replicas) + 1)
		return update()
	}
	for _, key := range phrase.SortedKeys(obj.GetLabels()) {
		labels := maps.Clone(obj.GetLabels())
		delete(labels, key)
		obj.SetLabels(labels)
		return update()
	}
	return nil
}

// delay defers the next action on an object until everything else is idle, and reports whether one was due.
func (a *actorState) delay(key types.NamespacedName) bool {
	if !slices.Contains(a.due, key) {
		return false
	}
	a.due = slices.DeleteFunc(a.due, func(due types.NamespacedName) bool { return due == key })
	a.deferred = append(a.deferred, key)
	return true
}
