// SPDX-License-Identifier: Apache-2.0

package app

import "k8s.io/apimachinery/pkg/runtime/schema"

// ConversionRequest asks for an object in another version of its kind.
type ConversionRequest struct {
	// SourceGVK is the kind and version of the object.
	SourceGVK schema.GroupVersionKind
	// TargetGVK is the same kind in the version that is asked for.
	TargetGVK schema.GroupVersionKind
	// Raw is the object.
	Raw RawObject
}

// RawObject is an object that was not decoded.
type RawObject struct {
	// Raw is the object as JSON.
	Raw []byte
}
