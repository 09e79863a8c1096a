// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// otherClient is another client, not a controller of the scenario, that changes objects just before the process writes
// them, or when the controller is idle. The injector decides when.
type otherClient struct {
	run *run
	// restartWhenIdle ends the process as soon as the controller is idle.
	restartWhenIdle bool
}

// touched is the annotation that the other client writes, to cause conflicts.
const touched = "converge.trueup.dev/touched"

var background = client.PropagationPolicy(metav1.DeletePropagationBackground)

// interfere changes the object of a call, as a fault requires.
func (o *otherClient) interfere(c *call, fault Fault) {
	switch fault {
	case FaultConflict:
		o.annotate(c)
	case FaultExists:
		o.createSame(c)
	case FaultTaken, FaultTakenUnnoticed:
		o.takeName(c, fault == FaultTaken)
	case FaultDeleted, FaultRecreated:
		o.remove(c, fault == FaultRecreated)
	}
}

func (o *otherClient) annotate(c *call) {
	r := o.run
	obj := r.world.storedFor(c)
	if obj == nil {
		r.faults.withdraw()
		return
	}
	defer r.watches.as(byOther)()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, touched, r.world.server.Version())
	err := r.world.other.Patch(r.ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
	r.trace.foreign("annotate", c, err)
	if err != nil {
		r.faults.withdraw()
	}
	r.watches.forward()
}

// hasAnnotated reports whether the other client has annotated the object of a call.
func (o *otherClient) hasAnnotated(c *call) bool {
	stored := o.run.world.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	if stored == nil {
		return false
	}
	_, ok := stored.GetAnnotations()[touched]
	return ok
}

// createSame creates the object of a call before the process does.
func (o *otherClient) createSame(c *call) {
	r := o.run
	obj := withKind(c.obj, c.gvk)
	defer r.watches.as(byOther)()
	err := r.world.other.Create(r.ctx, obj)
	r.trace.foreign("create", c, err)
	if err != nil {
		r.faults.withdraw()
		return
	}
	r.world.own[obj.GetUID()] = true
}

// takeName creates an object of the same name for a short time, with another controller if it is in a namespace.
func (o *otherClient) takeName(c *call, noticed bool) {
	r := o.run
	defer r.watches.as(byOther)()
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
	r.watches.forward()
	if err != nil {
		r.faults.withdraw()
	}
	uid := obj.GetUID()
	r.scheduler.after(longLag, func() {
		defer r.watches.as(byOther)()
		if err == nil {
			r.oracles.duplicates.explain(c.gvk, c.key) // also what was created for it
			r.trace.foreign("delete", c, r.world.other.Delete(r.ctx, obj, client.Preconditions{UID: &uid}, background))
		}
		if owner != nil {
			_ = r.world.other.Delete(r.ctx, owner)
		}
		o.restartWhenIdle = noticed
	})
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

// remove deletes the object of a call, and creates it again if recreate is set.
func (o *otherClient) remove(c *call, recreate bool) {
	r := o.run
	obj := r.world.storedFor(c)
	if obj == nil {
		r.faults.withdraw()
		return
	}
	defer r.watches.as(byOther)()
	r.oracles.duplicates.explain(c.gvk, c.key)
	err := r.world.other.Delete(r.ctx, obj.DeepCopyObject().(client.Object), background)
	r.trace.foreign("delete", c, err)
	r.watches.forward()
	if err != nil {
		r.faults.withdraw()
	} else if recreate {
		obj.SetResourceVersion("")
		obj.SetUID("")
		if err = r.world.other.Create(r.ctx, obj); err == nil {
			r.world.own[obj.GetUID()] = true
		} else {
			r.faults.withdraw()
		}
		r.trace.foreign("create", c, err)
		r.watches.forward()
	}
}
