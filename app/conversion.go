// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConversionRequest requests an object in another version of its kind.
type ConversionRequest struct {
	// SourceGVK is the kind and version of the object.
	SourceGVK schema.GroupVersionKind
	// TargetGVK is the same kind in the requested version.
	TargetGVK schema.GroupVersionKind
	// Raw is the object.
	Raw RawObject
}

// RawObject is an encoded object.
type RawObject struct {
	// Raw is the object as JSON.
	Raw []byte
}

// GroupVersionKind returns the kind of the object. It returns an error if the object does not have apiVersion and kind.
func (o RawObject) GroupVersionKind() (schema.GroupVersionKind, error) {
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal(o.Raw, &head); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("invalid object: %w", err)
	}
	gv, err := schema.ParseGroupVersion(head.APIVersion)
	switch {
	case err != nil:
		return schema.GroupVersionKind{}, err
	case gv.Version == "" || head.Kind == "":
		return schema.GroupVersionKind{}, fmt.Errorf(
			"invalid object: apiVersion and kind are required, got %q and %q", head.APIVersion, head.Kind,
		)
	}
	return gv.WithKind(head.Kind), nil
}
