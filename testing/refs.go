// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	document "trueup.dev/internal/engine/ownership"
	"trueup.dev/testing/internal/fakeapi"
)

// PatchRef is a patch of an object, or of its status.
type PatchRef struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
	// SubResource is "status" for patches of the status, which have their own expectations.
	SubResource string
	PatchType   types.PatchType
	// Patch is the patch as the client sends it. After an earlier patch of the finalizers of the object, the resource
	// version in it can be omitted, or be the one before that patch.
	Patch []byte
}

// NewPatchRef returns the patch that a [TestClient] has recorded, or that a reactor receives.
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

// NewDeleteRef returns the deletion that a [TestClient] has recorded, or that a reactor receives.
func NewDeleteRef(action DeleteAction) DeleteRef {
	return DeleteRef{
		Group:     action.GetResource().Group,
		Kind:      action.GetResource().Resource,
		Namespace: action.GetNamespace(),
		Name:      action.GetName(),
	}
}

// NewDeleteRefFromObject returns the deletion of an object. It panics if the kind of the object is neither set on it
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

// DeleteCollectionRef is a deletion of all objects of a kind that match selectors, in one namespace or in all.
type DeleteCollectionRef struct {
	Group     string
	Kind      string
	Namespace string
	// Labels and Fields select the deleted objects. A nil selector matches everything.
	Labels labels.Selector
	Fields fields.Selector
}

// NewDeleteCollectionRef returns the deletion that a [TestClient] has recorded, or that a reactor receives.
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
	// ApplyConfiguration is the applied configuration. It is compared by its JSON form, so that it may be of another Go
	// type than the configuration of the reconciler.
	ApplyConfiguration runtime.ApplyConfiguration
}

// NewApplyRef returns the apply that a [TestClient] has recorded, or that a reactor receives.
func NewApplyRef(action ApplyAction) ApplyRef {
	return ApplyRef{
		Group:              action.GetResource().Group,
		Kind:               action.GetResource().Resource,
		Namespace:          action.GetNamespace(),
		Name:               action.GetName(),
		ApplyConfiguration: action.GetApplyConfiguration(),
	}
}

// NewApplyRefFromObject returns the apply of the fields that an object sets, as a [reconcilers.ApplyingObjectManager]
// sends it: without the status and the metadata that the API server sets. It panics if the kind of the object is
// neither set on it nor in the scheme.
func NewApplyRefFromObject(obj client.Object, scheme *runtime.Scheme) ApplyRef {
	u, err := appliedFields(obj, scheme)
	if err != nil {
		panic(fmt.Errorf("apply of %T: %w", obj, err))
	}
	return ApplyRef{
		Group:              u.GroupVersionKind().Group,
		Kind:               u.GetKind(),
		Namespace:          u.GetNamespace(),
		Name:               u.GetName(),
		ApplyConfiguration: client.ApplyConfigurationFromUnstructured(u),
	}
}

// AppliedBy returns a copy of an object in which a field owner owns the fields that the object sets, as after a
// server-side apply. Cases of a [reconcilers.ApplyingObjectManager] need such given objects: an object without managed
// fields is not in sync, because the manager does not own its fields. By default, the owner is that of
// [reconcilers.DefaultFieldOwner]. It panics if the kind of the object is neither set on it nor in the scheme.
func AppliedBy[T client.Object](owner string, obj T, scheme *runtime.Scheme) T {
	u, err := appliedFields(obj, scheme)
	if err != nil {
		panic(fmt.Errorf("apply of %T: %w", obj, err))
	}
	fields, err := fakeapi.FieldsAppliedBy(owner, u)
	if err != nil {
		panic(fmt.Errorf("apply of %T: %w", obj, err))
	}
	copied := obj.DeepCopyObject().(T)
	copied.SetManagedFields(fields)
	return copied
}

func appliedFields(obj client.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, err
	}
	content, err := document.Document(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

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
