// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind has the content of objects of one kind in sequences: valid content, and changes of it to try.
type Kind struct {
	schema.GroupVersionKind

	// ClusterScoped reports whether objects of the kind have no namespace. Their names then start with the namespace of
	// the sequence.
	ClusterScoped bool

	// Untyped reports whether the scheme has no Go type for the kind.
	Untyped bool

	// Custom reports whether the kind has a CustomResourceDefinition.
	Custom bool

	// Status, Scale and Evictions report which subresources to use often; the others are used sometimes, to see them
	// rejected.
	Status, Scale, Evictions bool

	// Strategic reports whether the kind supports strategic merge patches.
	Strategic bool

	// NoCopies reports whether objects of the kind cannot be created from a read object of another name.
	NoCopies bool

	// Content is a valid object without metadata. It is not changed.
	Content map[string]any

	// Changes are changes of the content outside of metadata and status that a server may accept. Most are valid for
	// Content, and in combination.
	Changes []Edit

	// Faults are changes that a server rejects, or some of which it rejects.
	Faults []Edit

	// StatusChanges and StatusFaults are the same for the status.
	StatusChanges, StatusFaults []Edit

	// Applied is the minimal content of a valid apply.
	Applied map[string]any

	// Selectors are field selectors of the kind other than name and namespace.
	Selectors []string
}
