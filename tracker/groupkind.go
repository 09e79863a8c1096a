// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupKindOf returns the kind that is set on the object, otherwise the kind that the scheme has for its Go type. It is
// reference.GetReference of client-go without the allocations, because it runs for every event of every watch.
func groupKindOf(obj runtime.Object, scheme *runtime.Scheme) (schema.GroupKind, error) {
	if gvk := obj.GetObjectKind().GroupVersionKind(); !gvk.Empty() {
		return gvk.GroupKind(), nil
	}
	// A scheme may know this Go type, but as a kind of the meta API group, never
	// as the kind of the object whose metadata it holds.
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return schema.GroupKind{}, runtime.NewMissingKindErr("metadata-only object has no kind")
	}
	if scheme == nil {
		return schema.GroupKind{}, fmt.Errorf("scheme is required to look up the kind of %T", obj)
	}
	gvks, _, err := scheme.ObjectKinds(obj)
	if err != nil {
		return schema.GroupKind{}, err
	}
	return gvks[0].GroupKind(), nil
}
