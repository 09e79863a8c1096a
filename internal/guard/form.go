// SPDX-License-Identifier: Apache-2.0

package guard

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Form is a kind as one of the caches behind a client holds it: objects of a Go type, unstructured objects and bare metadata of one kind each have a cache,
// and indexes, of their own.
type Form struct {
	schema.GroupVersionKind
	// untyped and metadataOnly are for unstructured objects and bare metadata; neither is for Go types.
	untyped, metadataOnly bool
}

// NewForm returns the form of an object, or of a list, of a kind.
func NewForm(kind schema.GroupVersionKind, obj runtime.Object) Form {
	f := Form{GroupVersionKind: kind}
	switch obj.(type) {
	case runtime.Unstructured:
		f.untyped = true
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		f.metadataOnly = true
	}
	return f
}
