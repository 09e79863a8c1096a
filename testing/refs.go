// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchRef is a patch of an object, or of its status.
type PatchRef struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
	// SubResource is "status" for patches of the status, which are expected apart from others.
	SubResource string
	PatchType   types.PatchType
	// Patch is what is sent, to the byte. After a patch of the object's finalizers the resource version can be left out,
	// or be the one before.
	Patch []byte
}

// NewPatchRef returns the patch that a [TestClient] has recorded, or that a reactor is told of.
func NewPatchRef(action PatchAction) PatchRef {
	return PatchRef{
		Group:       action.GetResource().Group,
		Kind:        action.GetResource().Resource,
		Namespace:   action.GetNamespace(),
		Name:        action.GetName(),
		SubResource: action.GetSubresource(),
		PatchType:   action.GetPatchType(),
		Patch:       action.GetPatch(),
	}
}

// DeleteRef is a deletion of an object.
type DeleteRef struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// NewDeleteRef returns the deletion that a [TestClient] has recorded, or that a reactor is told of.
func NewDeleteRef(action DeleteAction) DeleteRef {
	return DeleteRef{
		Group:     action.GetResource().Group,
		Kind:      action.GetResource().Resource,
		Namespace: action.GetNamespace(),
		Name:      action.GetName(),
	}
}

// NewDeleteRefFromObject returns the deletion of an object. It panics when the kind of the object is neither set on it
// nor in the scheme.
func NewDeleteRefFromObject(obj client.Object, scheme *runtime.Scheme) DeleteRef {
	deleted, err := referenceTo(obj, scheme)
	if err != nil {
		panic(fmt.Errorf("deletion of %T: %w", obj, err))
	}
	return DeleteRef{
		Group:     deleted.GroupVersionKind().Group,
		Kind:      deleted.Kind,
		Namespace: deleted.Namespace,
		Name:      deleted.Name,
	}
}

// DeleteCollectionRef is a deletion of all objects of a kind that selectors match, in a namespace or in all.
type DeleteCollectionRef struct {
	Group     string
	Kind      string
	Namespace string
	// Labels and Fields select what is deleted. A nil selector is one that matches everything.
	Labels labels.Selector
	Fields fields.Selector
}

// NewDeleteCollectionRef returns the deletion that a [TestClient] has recorded, or that a reactor is told of.
func NewDeleteCollectionRef(action DeleteCollectionAction) DeleteCollectionRef {
	return DeleteCollectionRef{
		Group:     action.GetResource().Group,
		Kind:      action.GetResource().Resource,
		Namespace: action.GetNamespace(),
		Labels:    action.GetListRestrictions().Labels,
		Fields:    action.GetListRestrictions().Fields,
	}
}

// tidy returns the ref without selectors that select everything.
func (r DeleteCollectionRef) tidy() DeleteCollectionRef {
	if r.Labels != nil && r.Labels.Empty() {
		r.Labels = nil
	}
	if r.Fields != nil && r.Fields.Empty() {
		r.Fields = nil
	}
	return r
}

// ApplyRef is a server-side apply of an object, or of its status.
type ApplyRef struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
	// ApplyConfiguration is what is applied. It is compared by its JSON form, so that it may be of another Go type than
	// what the reconciler uses.
	ApplyConfiguration runtime.ApplyConfiguration
}

// NewApplyRef returns the apply that a [TestClient] has recorded, or that a reactor is told of.
func NewApplyRef(action ApplyAction) ApplyRef {
	return ApplyRef{
		Group:              action.GetResource().Group,
		Kind:               action.GetResource().Resource,
		Namespace:          action.GetNamespace(),
		Name:               action.GetName(),
		ApplyConfiguration: action.GetApplyConfiguration(),
	}
}
