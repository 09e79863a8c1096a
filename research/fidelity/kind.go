// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is what sequences are made of for one kind of object: content that a server takes, and changes of it that are
// worth a try.
type Kind struct {
	schema.GroupVersionKind

	// ClusterScoped is true for a kind whose objects are in no namespace. Their names then start with that of the
	// namespace of the sequence.
	ClusterScoped bool

	// Untyped is true for a kind that the scheme has no Go type for.
	Untyped bool

	// Custom is true for a kind with a definition of its own.
	Custom bool

	// Status, Scale, Evictions say which subresources are worth a try; the others are tried now and then, to see them
	// refused.
	Status, Scale, Evictions bool

	// Strategic is true for a kind that takes strategic merge patches.
	Strategic bool

	// NoCopies is true for a kind whose objects cannot be created from what was read of another, for reasons of their own.
	NoCopies bool

	// Content is a valid object but for its metadata. It is not changed.
	Content map[string]any

	// Changes of the content outside of metadata and status that a server may take, or may not take later: most of them
	// valid on Content, and with each other.
	Changes []Edit

	// Faults are changes that a server refuses, or some of them.
	Faults []Edit

	// StatusChanges and StatusFaults are the same for the status.
	StatusChanges, StatusFaults []Edit

	// Applied is the least content of a valid apply.
	Applied map[string]any

	// Selectors are field selectors that the kind knows besides name and namespace.
	Selectors []string
}
