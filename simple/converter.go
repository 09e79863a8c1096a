// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/app"
)

// Converter converts objects of a kind from one version to another. It must be safe for concurrent use.
//
// The API server calls it whenever a client reads or writes an object in another version than the stored one. A round
// trip must not lose anything, see [CheckRoundTrip]. In the metadata, a conversion may change only labels and
// annotations. [HubConverter] is a Converter for Go types.
type Converter interface {
	// Convert returns the object as JSON in the target version, such as example.com/v2. Users read the text of an
	// error.
	Convert(obj RawKind, targetAPIVersion string) ([]byte, error)
}

// ConverterFunc is a [Converter] that calls a function.
type ConverterFunc func(obj RawKind, targetAPIVersion string) ([]byte, error)

// Convert calls the function.
func (f ConverterFunc) Convert(obj RawKind, targetAPIVersion string) ([]byte, error) {
	return f(obj, targetAPIVersion)
}

// RawKind is an object that was not decoded.
type RawKind struct {
	// Kind is the kind of the object.
	Kind string
	// APIVersion is the group and version of the object, such as example.com/v1.
	APIVersion string
	// Group and Version are the parts of APIVersion.
	Group, Version string
	// Raw is the object as JSON.
	Raw []byte
}

// GroupVersionKind returns the kind of the object.
func (k RawKind) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// rawKind reads the kind of an object.
func rawKind(raw []byte) (RawKind, error) {
	gvk, err := app.RawObject{Raw: raw}.GroupVersionKind()
	if err != nil {
		return RawKind{}, err
	}
	return RawKind{
		Kind: gvk.Kind, APIVersion: gvk.GroupVersion().String(), Group: gvk.Group, Version: gvk.Version, Raw: raw,
	}, nil
}

// convert calls a converter unless the object already has the target version, and checks the result.
func convert(converter Converter, obj RawKind, targetAPIVersion string) ([]byte, error) {
	if obj.APIVersion == targetAPIVersion {
		return obj.Raw, nil
	}
	converted, err := converter.Convert(obj, targetAPIVersion)
	if err != nil {
		return nil, err
	}
	result, err := rawKind(converted)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the converter returned an invalid object: %w", err)
	case result.APIVersion != targetAPIVersion || result.Kind != obj.Kind:
		return nil, fmt.Errorf(
			"the converter returned a %s of %s, must be a %s of %s", result.Kind, result.APIVersion, obj.Kind, targetAPIVersion,
		)
	}
	return converted, nil
}
