// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
)

// otherClient is another client, not a controller of the scenario, that changes objects just before the process writes
// them, or when the controller is idle. The injector decides when.
type otherClient struct {
	run *run
	// unmarked removes the annotation at once.
	unmarked bool
}

var background = client.PropagationPolicy(metav1.DeletePropagationBackground)

// interfere changes the object of a call, as a fault requires. If the API server rejects that, the fault is withdrawn.
func (o *otherClient) interfere(c *call, fault Fault) {
	var err error
	at := o.run.faults.last
	switch fault {
	case FaultConflict:
		err = o.annotate(c)
	case FaultExists:
		err = o.createSame(c)
	case FaultTaken, FaultTakenUnnoticed:
		err = o.takeName(c, fault == FaultTaken)
	case FaultDeleted, FaultRecreated:
		err = o.remove(c, fault == FaultRecreated)
	default:
		panic(fmt.Sprintf("no other client injects the fault %q", fault))
	}
	if err != nil {
		o.run.faults.withdraw(at)
	}
	o.run.watches.forward()
}

var errAbsent = errors.New("the object does not exist")

func (o *otherClient) annotate(c *call) error {
	r := o.run
	obj := r.world.storedFor(c)
	if obj == nil {
		return errAbsent
	}
	err := o.mark(obj, strconv.Quote(strconv.FormatInt(r.world.server.Version(), 10)))
	if err == nil && o.unmarked {
		err = o.mark(obj, "null")
	}
	r.trace.foreign("annotate", c, err)
	return err
}

// mark sets the annotation to a JSON value.
func (o *otherClient) mark(obj client.Object, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, state.Touched, value)
	return o.run.world.other.Patch(o.run.ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// hasAnnotated reports whether the other client has annotated the object of a call.
func (o *otherClient) hasAnnotated(c *call) bool {
	stored := o.run.world.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	if stored == nil {
		return false
	}
	_, ok := stored.GetAnnotations()[state.Touched]
	return ok
}

// createSame creates the object of a call before the process does.
func (o *otherClient) createSame(c *call) error {
	r := o.run
	obj := withKind(c.obj, c.gvk)
	err := r.world.other.Create(r.ctx, obj, client.FieldOwner(cmp.Or(c.manager, c.process.program.client)))
	r.trace.foreign("create", c, err)
	if err == nil {
		r.world.own[obj.GetUID()] = true
	}
	return err
}

// takeName creates an object of the same name for a short time, with another controller if it is in a namespace. The
// processes end some time later if they are to notice that the name is free again.
func (o *otherClient) takeName(c *call, noticed bool) error {
	r := o.run
	obj := withKind(c.obj, c.gvk)
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
	err := r.world.other.Create(r.ctx, obj)
	r.trace.foreign("create", c, err)
	if err != nil {
		o.deleteOwner(owner)
		return err
	}
	uid := obj.GetUID()
	r.scheduler.after(longLag, func() {
		r.oracles.duplicates.explain(c.gvk, c.Key) // also what was created for it
		r.trace.foreign("delete", c, r.world.other.Delete(r.ctx, obj, client.Preconditions{UID: &uid}, background))
		o.deleteOwner(owner)
		for _, p := range r.processes {
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
	if err := o.run.world.other.Create(o.run.ctx, owner); err != nil {
		return nil
	}
	return owner
}

func (o *otherClient) deleteOwner(owner client.Object) {
	if owner != nil {
		_ = o.run.world.other.Delete(o.run.ctx, owner)
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
	r := o.run
	obj := r.world.storedFor(c)
	if obj == nil {
		return errAbsent
	}
	r.oracles.duplicates.explain(c.gvk, c.Key)
	err := r.world.other.Delete(r.ctx, obj.DeepCopyObject().(client.Object), background)
	r.trace.foreign("delete", c, err)
	if err != nil || !recreate {
		return err
	}
	r.watches.forward()
	manager := client.FieldOwner(creatorOf(obj, phrase.AnotherClient))
	obj.SetResourceVersion("")
	obj.SetUID("")
	if err = r.world.other.Create(r.ctx, obj, manager); err == nil {
		r.world.own[obj.GetUID()] = true
	}
	r.trace.foreign("create", c, err)
	return err
}
