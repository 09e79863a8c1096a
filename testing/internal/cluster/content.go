// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// content returns an object without the metadata that only servers set.
func content(u *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(u.Object)
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range serverFields {
			delete(metadata, field)
		}
		fields["metadata"] = metadata
	}
	return fields
}

// serverFields are the metadata that only servers set.
var serverFields = []string{
	"resourceVersion", "uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	"managedFields", "selfLink",
}

// setContent sets all fields except the metadata that only servers set.
func setContent(u *unstructured.Unstructured, content map[string]any) {
	changed := (&unstructured.Unstructured{Object: content}).DeepCopy()
	copyIdentity(changed, u)
	u.Object = changed.Object
}

// copyIdentity copies the metadata that only servers set.
func copyIdentity(to, from *unstructured.Unstructured) {
	for _, field := range serverFields {
		value, ok, err := unstructured.NestedFieldCopy(from.Object, "metadata", field)
		if !ok || err != nil {
			unstructured.RemoveNestedField(to.Object, "metadata", field)
		} else if err := unstructured.SetNestedField(to.Object, value, "metadata", field); err != nil {
			panic(err) // metadata is a map: the object has a name
		}
	}
}

// mergeChanges is a three-way merge: it applies the changes from base to theirs to ours. Values that ours has changed
// are kept.
func mergeChanges(base, theirs, ours map[string]any) map[string]any {
	merged := map[string]any{}
	for _, side := range []map[string]any{theirs, ours} {
		for name := range side {
			merged[name] = mergeChangedValue(base[name], theirs[name], ours[name])
		}
	}
	maps.DeleteFunc(merged, func(_ string, value any) bool { return value == nil })
	return merged
}

func mergeChangedValue(base, theirs, ours any) any {
	switch ours := ours.(type) {
	case map[string]any:
		base, isMap := base.(map[string]any)
		theirs, areMaps := theirs.(map[string]any)
		if isMap && areMaps {
			return mergeChanges(base, theirs, ours)
		}
	case []any:
		base, isList := base.([]any)
		theirs, areLists := theirs.([]any)
		if isList && areLists && len(base) == len(ours) && len(theirs) == len(ours) {
			merged := make([]any, len(ours))
			for i := range ours {
				merged[i] = mergeChangedValue(base[i], theirs[i], ours[i])
			}
			return merged
		}
	}
	if equality.Semantic.DeepEqual(ours, base) {
		return theirs
	}
	return ours
}

// overlay returns base with the fields of a document, like a merge patch.
func overlay(base, document map[string]any) map[string]any {
	merged := runtime.DeepCopyJSON(base)
	if merged == nil {
		merged = map[string]any{}
	}
	for name, value := range document {
		switch value := value.(type) {
		case nil:
			delete(merged, name)
		case map[string]any:
			below, _ := merged[name].(map[string]any)
			merged[name] = overlay(below, value)
		default:
			merged[name] = runtime.DeepCopyJSONValue(value)
		}
	}
	return merged
}

// withoutEmpty returns a value without the empty fields that Go types always write.
func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, item := range value {
			if item = withoutEmpty(item); item != nil {
				kept[key] = item
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	case []any:
		if len(value) == 0 {
			return nil
		}
	case string:
		if value == "" {
			return nil
		}
	}
	return value
}
