// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SubResourceRef is a write to a subresource other than the status: an eviction, a token, a new scale.
type SubResourceRef struct {
	// Verb is create, update, patch or apply.
	Verb string
	// Group, Kind, Namespace and Name identify the object with the subresource.
	Group       string
	Kind        string
	Namespace   string
	Name        string
	SubResource string
	// Body is the body of a create or an update. Nil if the caller has sent the object itself.
	Body client.Object
	// PatchType and Patch are set for patches.
	PatchType types.PatchType
	Patch     []byte
	// ApplyConfiguration is set for applies.
	ApplyConfiguration runtime.ApplyConfiguration
}

// NewSubResourceRef returns the write that a [TestClient] has recorded, or that a reactor receives.
func NewSubResourceRef(action Action) SubResourceRef {
	ref := SubResourceRef{
		Verb:        action.GetVerb(),
		Group:       action.GetResource().Group,
		Kind:        action.GetResource().Resource,
		Namespace:   action.GetNamespace(),
		SubResource: action.GetSubresource(),
	}
	switch action := action.(type) {
	case ApplyAction:
		ref.Name, ref.ApplyConfiguration = action.GetName(), action.GetApplyConfiguration()
	case PatchAction:
		ref.Name, ref.PatchType, ref.Patch = action.GetName(), action.GetPatchType(), action.GetPatch()
	case bodyAction:
		ref.Name = action.GetName()
		ref.Body, _ = action.GetObject().(client.Object)
	case objectAction:
		if obj, err := meta.Accessor(action.GetObject()); err == nil {
			ref.Name = obj.GetName()
		}
	}
	return ref
}
