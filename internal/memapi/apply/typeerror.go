// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// inOrder returns the error about a patch with wrong types with all problems, sorted. The library visits fields in
// random order and stops at the first one that is not in the schema: its message varies.
func inOrder(err error, converter managedfields.TypeConverter, patch *unstructured.Unstructured) error {
	const end = "): "
	text := err.Error()
	at := strings.Index(text, end)
	if !strings.HasPrefix(text, "failed to create typed patch object (") || at < 0 {
		return err
	}
	sorted := problemsIn(patch, converter)
	switch len(sorted) {
	case 0:
		return err
	case 1:
		return errors.New(text[:at] + end + sorted[0])
	}
	return errors.New(text[:at] + end + "errors:\n  " + strings.Join(sorted, "\n  "))
}

// problemsIn returns the problems of all fields of an object, sorted.
func problemsIn(obj *unstructured.Unstructured, converter managedfields.TypeConverter) []string {
	problems := map[string]bool{}
	visitLeaves(obj.Object, nil, func(path []string, leaf any) {
		single := map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind()}
		if unstructured.SetNestedField(single, leaf, path...) != nil {
			return
		}
		if _, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: single}); err != nil {
			for line := range strings.SplitSeq(strings.TrimPrefix(err.Error(), "errors:\n"), "\n") {
				problems[strings.TrimSpace(line)] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(problems))
}

// visitLeaves calls visit for all values that are not objects with fields.
func visitLeaves(content map[string]any, path []string, visit func(path []string, leaf any)) {
	for key, value := range content {
		at := append(slices.Clone(path), key)
		if object, ok := value.(map[string]any); ok && len(object) > 0 {
			visitLeaves(object, at, visit)
		} else {
			visit(at, value)
		}
	}
}
