// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/resource"
)

// CheckRoundTrip converts an object of a kind to another version and back, and returns an error that shows what was
// lost or changed. Use it in tests of converters. Call it with objects of each version that have a value in every
// field, through each other version.
func CheckRoundTrip(converter Converter, kind resource.Kind, object resource.Object, throughAPIVersion string) error {
	if nilcheck.IsNil(converter) || nilcheck.IsNil(object) {
		return fmt.Errorf("the converter and the object must not be nil, got %v and %v", converter, object)
	}
	if err := kind.Validate(); err != nil {
		return err
	}
	start := object.DeepCopyObject().(resource.Object)
	start.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind())
	raw, err := json.Marshal(start)
	if err != nil {
		return err
	}
	apiVersion := kind.GroupVersionKind().GroupVersion().String()
	there, err := converted(converter, raw, throughAPIVersion)
	if err != nil {
		return fmt.Errorf("from %s to %s: %w", apiVersion, throughAPIVersion, err)
	}
	if err := checkMetadata(raw, there); err != nil {
		return fmt.Errorf("from %s to %s: %w", apiVersion, throughAPIVersion, err)
	}
	back, err := converted(converter, there, apiVersion)
	if err != nil {
		return fmt.Errorf("from %s back to %s: %w", throughAPIVersion, apiVersion, err)
	}
	end := reflect.New(reflect.TypeOf(start).Elem()).Interface().(resource.Object)
	if err := json.Unmarshal(back, end); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(start, end) {
		return fmt.Errorf("from %s to %s and back (-before +after):\n%s", apiVersion, throughAPIVersion, cmp.Diff(start, end))
	}
	return nil
}

func converted(converter Converter, raw []byte, apiVersion string) ([]byte, error) {
	obj, err := rawKind(raw)
	if err != nil {
		return nil, err
	}
	return convert(converter, obj, apiVersion)
}

// checkMetadata returns an error if a conversion has changed metadata other than labels and annotations.
func checkMetadata(before, after []byte) error {
	var metadata [2]map[string]any
	for i, raw := range [][]byte{before, after} {
		var object struct{ Metadata map[string]any }
		if err := json.Unmarshal(raw, &object); err != nil {
			return err
		}
		// Some Go types encode a null creationTimestamp.
		if object.Metadata["creationTimestamp"] == nil {
			delete(object.Metadata, "creationTimestamp")
		}
		delete(object.Metadata, "labels")
		delete(object.Metadata, "annotations")
		metadata[i] = object.Metadata
	}
	if !equality.Semantic.DeepEqual(metadata[0], metadata[1]) {
		return fmt.Errorf("the metadata must not change (-before +after):\n%s", cmp.Diff(metadata[0], metadata[1]))
	}
	return nil
}
