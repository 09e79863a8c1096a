// SPDX-License-Identifier: Apache-2.0

package duck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Convert copies the content of one object into another of a different Go type, field by field of their JSON forms.
// Fields that the target type does not have are dropped. Previous content of the target is replaced. Both must be
// pointers, and either may be unstructured. They share no memory afterwards.
//
// After an error the target may be partially filled.
func Convert(from runtime.Object, to runtime.Object) error {
	if u, ok := from.(runtime.Unstructured); ok {
		// converting an unstructured object does not copy its content
		from = u.DeepCopyObject()
	}
	return convert(from, to)
}

// convert is like Convert, but the object must not be used afterwards: the target may share nested values of an
// unstructured object.
func convert(from runtime.Object, to runtime.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return fmt.Errorf("unable to convert from object: %w", err)
	}
	if u, ok := to.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(content)
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, to); err != nil {
		return fmt.Errorf("unable to convert to object: %w", err)
	}
	return nil
}

// asUnstructured calls do with the unstructured form of the object and copies the result back into the object. After an
// error the object is unchanged, unless copying back failed.
func asUnstructured(obj client.Object, do func(u *unstructured.Unstructured) error) error {
	u := &unstructured.Unstructured{}
	if err := convert(obj, u); err != nil {
		return err
	}
	if err := do(u); err != nil {
		return err
	}
	return convert(u, obj)
}

// asUnstructuredList is asUnstructured for lists.
func asUnstructuredList(list client.ObjectList, do func(u *unstructured.UnstructuredList) error) error {
	u := &unstructured.UnstructuredList{}
	if err := convert(list, u); err != nil {
		return err
	}
	if err := do(u); err != nil {
		return err
	}
	return convert(u, list)
}
