// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// apply returns the live object with the applied fields. Fields that the owner applied before and no longer applies are
// removed, unless they have another owner. Changing fields of another owner is a conflict, unless it is forced.
func (r *realism) apply(
	live, applied *unstructured.Unstructured, subResource string, options metav1.PatchOptions,
) (*unstructured.Unstructured, error) {
	fields, err := fieldManager(applied.GroupVersionKind(), subResource)
	if err != nil {
		return nil, err
	}
	applied.SetResourceVersion("")
	merged, err := fields.Apply(live, applied, options.FieldManager, options.Force != nil && *options.Force)
	if err != nil {
		return nil, err
	}
	u, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("unexpected result of an apply: %T", merged)
	}
	return u, nil
}

// own assigns fields that are written without an apply to their new owner. Owners are tracked after the first apply
// only: until then, all fields belong to the first writer.
func (r *realism) own(before, after *unstructured.Unstructured, obj metav1.Object, manager string) error {
	if len(before.GetManagedFields()) == 0 {
		return nil
	}
	fields, err := fieldManager(after.GroupVersionKind(), "")
	if err != nil {
		return err
	}
	owned, err := fields.Update(before, after, manager)
	if err != nil {
		return err
	}
	obj.SetManagedFields(owned.(metav1.Object).GetManagedFields())
	return nil
}

// FieldsAppliedBy returns the managed fields of an object after a field owner has applied it.
func FieldsAppliedBy(owner string, applied *unstructured.Unstructured) ([]metav1.ManagedFieldsEntry, error) {
	fields, err := fieldManager(applied.GroupVersionKind(), "")
	if err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(applied.GroupVersionKind())
	owned, err := fields.Apply(live, applied.DeepCopy(), owner, true)
	if err != nil {
		return nil, err
	}
	entries := owned.(metav1.Object).GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	return entries, nil
}

func fieldManager(gvk schema.GroupVersionKind, subResource string) (*managedfields.FieldManager, error) {
	if clientgoscheme.Scheme.Recognizes(gvk) {
		return managedfields.NewDefaultFieldManager(
			clientgoapply.NewTypeConverter(clientgoscheme.Scheme), oneVersion{}, oneVersion{}, oneVersion{}, gvk,
			gvk.GroupVersion(), subResource, nil)
	}
	return managedfields.NewDefaultCRDFieldManager(
		managedfields.NewDeducedTypeConverter(), oneVersion{}, oneVersion{}, oneVersion{}, gvk, gvk.GroupVersion(),
		subResource, nil)
}

// oneVersion is the part of a scheme that field managers need, if all objects are unstructured, have the stored version
// and have no defaults.
type oneVersion struct{}

func (oneVersion) Convert(_, _, _ any) error { return nil }

func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (oneVersion) Default(runtime.Object) {}

func (oneVersion) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	return unstructuredKinds{runtime.NewScheme()}.New(gvk)
}
