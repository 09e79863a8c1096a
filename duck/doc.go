// SPDX-License-Identifier: Apache-2.0

// Package duck lets clients work with duck types: Go types that describe only a part of an object.
//
// Many kinds share a shape. Deployments, StatefulSets and many custom resources have spec.replicas, and a reconciler
// that scales them needs no other field. A structured type limits it to one kind; an unstructured object has no type
// safety. A duck type has both, type safety and any number of kinds:
//
//	type Scalable struct {
//		metav1.TypeMeta   `json:",inline"`
//		metav1.ObjectMeta `json:"metadata,omitempty"`
//		Spec              ScalableSpec `json:"spec"`
//	}
//
//	type ScalableSpec struct {
//		Replicas *int32 `json:"replicas,omitempty"`
//	}
//
// Do not register a duck type in the scheme, and set its APIVersion and Kind before each use. They identify the kind
// and mark the object as a duck, see [IsDuck].
//
//	c := duck.NewDuckAwareClientWrapper(mgr.GetClient())
//
//	scalable := &Scalable{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
//	err := c.Get(ctx, key, scalable)
//
// The wrapped client receives unstructured objects in place of ducks, and other objects unchanged.
//
// # Writing
//
// Patch a duck, with a patch made from it before the change:
//
//	before := scalable.DeepCopy()
//	scalable.Spec.Replicas = new(int32(3))
//	err := c.Patch(ctx, scalable, client.MergeFrom(before))
//
// Only the difference is sent. Create and Update send the whole object and would remove every field that the duck type
// does not have, so they return an error. [NewDangerousDuckAwareClientWrapper] allows them.
//
// A merge patch replaces a list as a whole. If other clients write items to the same list, conditions for example,
// create the patch with client.MergeFromWithOptimisticLock, and expect conflicts.
//
// # Caches
//
// By default, the client of a manager caches neither unstructured objects nor ducks: each read goes to the API server.
// Set Client.Cache.Unstructured in the options of the manager to have them cached.
package duck
