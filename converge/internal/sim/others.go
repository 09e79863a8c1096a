// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi/workloads"
)

// otherClient is another client, not a controller of the scenario, that changes objects just before the process writes
// them, or when the controller is idle. The injector decides when.
type otherClient struct {
	*scene

	watches   *watches
	actors    *actors
	processes *processes
	users     *users
	// unmarked removes the annotation at once.
	unmarked bool
}

var background = client.PropagationPolicy(metav1.DeletePropagationBackground)

// interfere changes the object of a call, as a fault requires. If the API server rejects that, the fault is withdrawn.
func (o *otherClient) interfere(c *call, fault inject.Fault) {
	var err error
	at := o.faults.last
	switch fault {
	case inject.Conflict:
		err = o.annotate(c)
	case inject.Exists:
		err = o.createSame(c)
	case inject.Taken, inject.TakenUnnoticed:
		err = o.takeName(c, fault == inject.Taken)
	case inject.Deleted, inject.Recreated:
		err = o.remove(c, fault == inject.Recreated)
	default:
		panic(fmt.Sprintf("no other client injects the fault %q", fault))
	}
	if err != nil {
		o.faults.withdraw(at)
	}
	o.watches.forward()
}

var errAbsent = errors.New("the object does not exist")

func (o *otherClient) annotate(c *call) error {
	obj := o.world.StoredFor(&c.Call)
	if obj == nil {
		return errAbsent
	}
	err := o.mark(obj, strconv.Quote(strconv.FormatInt(o.world.Server.Version(), 10)))
	if err == nil && o.unmarked {
		err = o.mark(obj, "null")
	}
	o.trace.Foreign("annotate", &c.Call, err)
	return err
}

// mark sets the annotation to a JSON value.
func (o *otherClient) mark(obj client.Object, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, state.Touched, value)
	return o.world.Other.Patch(context.Background(), obj, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// hasAnnotated reports whether the other client has annotated the object of a call.
func (o *otherClient) hasAnnotated(c *call) bool {
	stored := o.world.Server.Get(c.GVK, client.ObjectKeyFromObject(c.Obj))
	if stored == nil {
		return false
	}
	_, ok := stored.GetAnnotations()[state.Touched]
	return ok
}

// createSame creates the object of a call before the process does.
func (o *otherClient) createSame(c *call) error {
	obj := world.WithKind(c.Obj, c.GVK)
	err := o.world.Other.Create(context.Background(), obj, client.FieldOwner(cmp.Or(c.Manager, c.process.program.Client)))
	o.trace.Foreign("create", &c.Call, err)
	if err == nil {
		o.world.Own[obj.GetUID()] = true
	}
	return err
}

// takeName creates an object of the same name for a short time, with another controller if it is in a namespace. The
// processes end some time later if they are to notice that the name is free again.
func (o *otherClient) takeName(c *call, noticed bool) error {
	obj := world.WithKind(c.Obj, c.GVK)
	obj.SetOwnerReferences(nil)
	obj.SetFinalizers(nil)
	obj.SetLabels(nil)
	obj.SetAnnotations(nil)
	owner := o.createOwner(obj.GetNamespace())
	if owner != nil {
		obj.SetOwnerReferences([]metav1.OwnerReference{
			*metav1.NewControllerRef(owner, owner.GetObjectKind().GroupVersionKind()),
		})
	}
	err := o.world.Other.Create(context.Background(), obj)
	o.trace.Foreign("create", &c.Call, err)
	if err != nil {
		o.deleteOwner(owner)
		return err
	}
	uid := obj.GetUID()
	o.scheduler.after(longLag, func() {
		o.oracles.Duplicates.Explain(c.GVK, c.Key) // also what was created for it
		err := o.world.Other.Delete(context.Background(), obj, client.Preconditions{UID: &uid}, background)
		o.trace.Foreign("delete", &c.Call, err)
		o.deleteOwner(owner)
		for _, p := range *o.processes {
			p.restartWhenIdle = p.restartWhenIdle || noticed
		}
	})
	return nil
}

// createOwner creates an object that can own another one, or returns nil.
func (o *otherClient) createOwner(namespace string) client.Object {
	if namespace == "" {
		return nil
	}
	owner := &unstructured.Unstructured{}
	owner.GetObjectKind().SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	owner.SetNamespace(namespace)
	owner.SetName("converge-other")
	if err := o.world.Other.Create(context.Background(), owner); err != nil {
		return nil
	}
	return owner
}

func (o *otherClient) deleteOwner(owner client.Object) {
	if owner != nil {
		_ = o.world.Other.Delete(context.Background(), owner)
	}
}

// creatorOf returns the first field manager of an object, or unknown if they are not recorded.
func creatorOf(obj client.Object, unknown string) string {
	if managers := obj.GetManagedFields(); len(managers) > 0 {
		return managers[0].Manager
	}
	return unknown
}

// remove deletes the object of a call, and creates it again if recreate is set.
func (o *otherClient) remove(c *call, recreate bool) error {
	obj := o.world.StoredFor(&c.Call)
	if obj == nil {
		return errAbsent
	}
	o.oracles.Duplicates.Explain(c.GVK, c.Key)
	err := o.world.Other.Delete(context.Background(), obj.DeepCopyObject().(client.Object), background)
	o.trace.Foreign("delete", &c.Call, err)
	if err != nil || !recreate {
		if err == nil {
			o.users.deleted()
		}
		return err
	}
	o.watches.forward()
	manager := client.FieldOwner(creatorOf(obj, phrase.AnotherClient))
	obj.SetResourceVersion("")
	obj.SetUID("")
	if err = o.world.Other.Create(context.Background(), obj, manager); err == nil {
		o.world.Own[obj.GetUID()] = true
	}
	o.trace.Foreign("create", &c.Call, err)
	return err
}

// disturb injects the faults of objects when the controller is idle, and reports whether it has injected one.
func (o *otherClient) disturb() bool {
	disturbed := false
	for _, kind := range o.world.Server.Kinds() {
		for _, obj := range o.world.Server.List(kind) {
			if !o.world.Own[obj.GetUID()] || obj.GetDeletionTimestamp() != nil || workloads.Ended(obj) {
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
	key := client.ObjectKeyFromObject(obj)
	faults := inject.SetOf(inject.ChildDeleted, inject.Drift)
	actor := o.actors.of(kind)
	if w, ok := state.WorkloadOf(kind, obj); ok && actor != nil && actor.Restores && w.Available > 0 {
		faults |= inject.SetOf(inject.Flap)
	}
	switch o.faults.at(inject.Site{Act: "quiet", Kind: kind.Kind, Key: o.world.Generated.Key(key)}, faults) {
	case inject.ChildDeleted:
		o.change(kind, key, "delete", inject.ChildDeleted, func(obj client.Object) error {
			return o.world.Other.Delete(context.Background(), obj, background)
		})
	case inject.Flap:
		o.change(kind, key, "has no available replica", inject.Flap, o.makeUnavailable)
		if actor.delay(key) {
			o.oracles.Status.IsFlapping(kind, obj)
		}
	case inject.Drift:
		o.change(kind, key, "change", inject.Drift, o.drift)
	default:
		return false
	}
	return true
}

// change changes a stored object.
func (o *otherClient) change(
	kind schema.GroupVersionKind, key types.NamespacedName, verb string, fault inject.Fault, do func(client.Object) error,
) {
	defer o.watches.forward()
	o.oracles.Duplicates.Explain(kind, key)
	err := do(world.WithKind(o.world.Server.Get(kind, key), kind))
	if err != nil {
		o.faults.withdraw(o.faults.last)
	}
	o.trace.Fault(phrase.AnotherClient, verb+" "+kind.Kind+" "+phrase.Name(key)+phrase.After(err), fault)
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
	return o.world.Other.Status().Update(context.Background(), obj)
}

// drift changes one field of an object that a reconciler sets.
func (o *otherClient) drift(obj client.Object) error {
	update := func() error { return o.world.Other.Update(context.Background(), obj) }
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
