// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

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

// GroupVersionKind reads which kind the object is of. It is an error unless the object says it.
func (o RawObject) GroupVersionKind() (schema.GroupVersionKind, error) {
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal(o.Raw, &head); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("not an object: %w", err)
	}
	gv, err := schema.ParseGroupVersion(head.APIVersion)
	switch {
	case err != nil:
		return schema.GroupVersionKind{}, err
	case gv.Version == "" || head.Kind == "":
		return schema.GroupVersionKind{}, fmt.Errorf("not an object: apiVersion is %q, kind is %q", head.APIVersion, head.Kind)
	}
	return gv.WithKind(head.Kind), nil
}
