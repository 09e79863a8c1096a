// SPDX-License-Identifier: Apache-2.0

package duck

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// IsDuck reports whether the object is duck typed: its Go type is not registered in the scheme, and its APIVersion and
// Kind are set. Unstructured and metadata-only objects, which clients handle without registration, are not ducks.
func IsDuck(obj runtime.Object, scheme *runtime.Scheme) bool {
	return obj != nil && !isKnown(obj, scheme) && !obj.GetObjectKind().GroupVersionKind().Empty()
}

// isKnown reports whether a plain client can handle the Go type of the object.
func isKnown(obj runtime.Object, scheme *runtime.Scheme) bool {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return true
	}
	_, _, err := scheme.ObjectKinds(obj)
	return !runtime.IsNotRegisteredError(err)
}
