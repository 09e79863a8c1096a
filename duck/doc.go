// SPDX-License-Identifier: Apache-2.0

// Package duck lets clients work with duck types: Go types that describe only
// the part of an object that is of interest.
//
// Many kinds share a shape. Deployments, StatefulSets and plenty of custom
// resources have a spec.replicas; a reconciler that scales them needs nothing
// else. A structured type would tie it to one kind, an unstructured object would
// cost it all type safety. A duck type sits between:
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
// Do not register a duck type in the scheme, and set its APIVersion and Kind
// before each use, to say which kind it stands for this time. That is also how
// it is recognised, see [IsDuck].
//
//	c := duck.NewDuckAwareClientWrapper(mgr.GetClient())
//
//	scalable := &Scalable{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
//	err := c.Get(ctx, key, scalable)
//
// The wrapped client sees unstructured objects in place of ducks, and everything
// else as it is.
//
// # Writing
//
// Patch a duck, with a patch made from it before the change:
//
//	before := scalable.DeepCopy()
//	scalable.Spec.Replicas = new(int32(3))
//	err := c.Patch(ctx, scalable, client.MergeFrom(before))
//
// Only the difference is sent. Create and Update send an object whole, which
// would remove every field that the duck type does not have, so they return an
// error. [NewDangerousDuckAwareClientWrapper] allows them.
//
// A merge patch replaces a list as a whole. Where others write items to the same
// list, conditions for example, make the patch with
// client.MergeFromWithOptimisticLock, and expect conflicts.
//
// # Caches
//
// By default a manager's client does not cache unstructured objects, and so no
// ducks: each read goes to the API server. Set Client.Cache.Unstructured in the
// options of the manager to have them cached.
package duck
