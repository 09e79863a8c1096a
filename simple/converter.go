// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/app"
)

// Converter converts objects of a kind from one version to another. It is safe for concurrent use.
//
// The API server asks for it whenever somebody reads or writes an object in another version than the one that is
// stored. Nothing may be lost on the way there and back, see [CheckRoundTrip], and of the metadata only labels and
// annotations may change. [HubConverter] is one for Go types.
type Converter interface {
	// Convert returns the object as JSON in the target version, such as example.com/v2. Users read the text of an error.
	Convert(obj RawKind, targetAPIVersion string) ([]byte, error)
}

// ConverterFunc is a [Converter] made of a function.
type ConverterFunc func(obj RawKind, targetAPIVersion string) ([]byte, error)

// Convert calls the function.
func (f ConverterFunc) Convert(obj RawKind, targetAPIVersion string) ([]byte, error) {
	return f(obj, targetAPIVersion)
}

// RawKind is an object that was not decoded.
type RawKind struct {
	// Kind is the kind of the object.
	Kind string
	// APIVersion is group and version of the object, such as example.com/v1.
	APIVersion string
	// Group and Version are the parts of APIVersion.
	Group, Version string
	// Raw is the object as JSON.
	Raw []byte
}

// GroupVersionKind returns what kind the object is of.
func (k RawKind) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// rawKind reads what kind an object is of.
func rawKind(raw []byte) (RawKind, error) {
	gvk, err := app.RawObject{Raw: raw}.GroupVersionKind()
	if err != nil {
		return RawKind{}, err
	}
	return RawKind{
		Kind: gvk.Kind, APIVersion: gvk.GroupVersion().String(), Group: gvk.Group, Version: gvk.Version, Raw: raw,
	}, nil
}

// convert calls a converter unless there is nothing to do, and makes sure of what has come out.
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
		return nil, fmt.Errorf("the converter has returned a faulty object: %w", err)
	case result.APIVersion != targetAPIVersion || result.Kind != obj.Kind:
		return nil, fmt.Errorf(
			"the converter has returned a %s of %s, not a %s of %s", result.Kind, result.APIVersion, obj.Kind, targetAPIVersion,
		)
	}
	return converted, nil
}
