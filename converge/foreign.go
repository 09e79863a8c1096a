// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file has what somebody else does just before a write.

// touched is the annotation that somebody else writes, to be in conflict.
const touched = "converge.trueup.dev/touched"

func (r *run) annotate(c *call) {
	obj := r.storedFor(c)
	if obj == nil {
		r.missed()
		return
	}
	defer r.as("somebody")()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, touched, r.server.Version())
	err := r.other.Patch(r.ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
	r.log.foreign(r, "annotate", c, err)
	if err != nil {
		r.missed()
	}
	r.changed()
}

// checkAnnotated looks whether a write has undone what somebody else has written just before. Only the write of an
// object that was read counts, which has a UID: it has not told which version it is based on. An object that is made
// from nothing each time may be meant to be all that there is.
func (r *run) checkAnnotated(c *call, uid types.UID) {
	stored := r.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	if uid == "" || stored == nil || stored.GetUID() != uid || stored.GetDeletionTimestamp() != nil {
		return
	}
	if !r.isAnnotated(c) {
		name := c.gvk.Kind + " " + nameOf(c.key)
		r.violate(Violation{
			Oracle: OracleEndState, Cause: CauseOverwritten, About: name,
			Message: c.act + " " + name + " overwrites a change of another client",
		})
	}
}

// storedFor returns a copy of the object that a call is about.
func (r *run) storedFor(c *call) client.Object {
	stored := r.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	if stored == nil {
		return nil
	}
	return r.withKind(stored, c.gvk)
}

// withKind returns a copy of a stored object, which can be sent.
func (r *run) withKind(stored client.Object, gvk schema.GroupVersionKind) client.Object {
	obj := stored.DeepCopyObject().(client.Object)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj
}

// precede has the object be there already.
func (r *run) precede(c *call) {
	obj := r.withKind(c.obj, c.gvk)
	defer r.as("somebody")()
	err := r.other.Create(r.ctx, obj)
	r.log.foreign(r, "create", c, err)
	if err != nil {
		r.missed()
		return
	}
	r.own[obj.GetUID()] = true
}

// takeName has somebody else have an object of the same name, for a moment.
func (r *run) takeName(c *call, noticed bool) {
	defer r.as("somebody")()
	obj := r.withKind(c.obj, c.gvk)
	obj.SetOwnerReferences(nil)
	obj.SetFinalizers(nil)
	obj.SetLabels(nil)
	obj.SetAnnotations(nil)
	var owner client.Object
	if namespace := obj.GetNamespace(); namespace != "" {
		owner = &unstructured.Unstructured{}
		owner.GetObjectKind().SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
		owner.SetNamespace(namespace)
		owner.SetName("converge-somebody")
		if err := r.other.Create(r.ctx, owner); err != nil {
			owner = nil
		} else {
			obj.SetOwnerReferences([]metav1.OwnerReference{
				*metav1.NewControllerRef(owner, owner.GetObjectKind().GroupVersionKind()),
			})
		}
	}
	err := r.other.Create(r.ctx, obj)
	r.log.foreign(r, "create", c, err)
	r.changed()
	if err != nil {
		r.missed()
	}
	uid := obj.GetUID()
	r.after(longLag, func() {
		defer r.as("somebody")()
		if err == nil {
			r.made.explain(r, c.gvk, c.key) // with what was made for it meanwhile
			r.log.foreign(
				r, "delete", c,
				r.other.Delete(
					r.ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground),
				),
			)
		}
		if owner != nil {
			_ = r.other.Delete(r.ctx, owner)
		}
		r.restartWhenQuiet = noticed
	})
}

// remove has somebody else delete the object that is about to be written, and create it again if again is true.
func (r *run) remove(c *call, again bool) {
	obj := r.storedFor(c)
	if obj == nil {
		r.missed()
		return
	}
	defer r.as("somebody")()
	r.made.explain(r, c.gvk, c.key)
	err := r.other.Delete(
		r.ctx, obj.DeepCopyObject().(client.Object), client.PropagationPolicy(metav1.DeletePropagationBackground),
	)
	r.log.foreign(r, "delete", c, err)
	r.changed()
	if err != nil {
		r.missed()
	} else if again {
		obj.SetResourceVersion("")
		obj.SetUID("")
		if err = r.other.Create(r.ctx, obj); err == nil {
			r.own[obj.GetUID()] = true
		} else {
			r.missed()
		}
		r.log.foreign(r, "create", c, err)
		r.changed()
	}
}

// otherVersion is true for an update of an object that was read, with another version than it was read with: nobody is
// told of changes in between.
func (r *run) otherVersion(c *call) bool {
	version, read := r.process.filled[c.obj]
	return read && c.act == "update" && version != c.obj.GetResourceVersion()
}

// isAnnotated is true if somebody else has annotated an object.
func (r *run) isAnnotated(c *call) bool {
	stored := r.server.Get(c.gvk, client.ObjectKeyFromObject(c.obj))
	if stored == nil {
		return false
	}
	_, ok := stored.GetAnnotations()[touched]
	return ok
}

// as has somebody else write, until what it returns is called.
func (r *run) as(who string) func() {
	before := r.acting
	r.acting = who
	return func() {
		r.changed()
		r.acting = before
	}
}
