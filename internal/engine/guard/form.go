// SPDX-License-Identifier: Apache-2.0

package guard

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Form is a kind as one of the caches behind a client holds it. Objects of a Go type, unstructured objects and
// metadata-only objects of a kind each have their own cache and indexes.
type Form struct {
	schema.GroupVersionKind
	// untyped is set for unstructured objects, metadataOnly for metadata-only objects, neither for Go types.
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
