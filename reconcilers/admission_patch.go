// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"encoding/json"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admissionPatch returns the patch to raw that turns received, which is what was read from it, into changed.
func admissionPatch(raw []byte, received, changed client.Object) ([]jsonpatch.Operation, error) {
	var original any
	if err := json.Unmarshal(raw, &original); err != nil {
		return nil, err
	}
	before, err := jsonValue(received)
	if err != nil {
		return nil, err
	}
	after, err := jsonValue(changed)
	if err != nil {
		return nil, err
	}
	merged, err := json.Marshal(carryOver(original, before, after))
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreatePatch(raw, merged)
}

// patchedPaths is what to log of a patch: its values may be secret.
func patchedPaths(patches []jsonpatch.Operation) []string {
	paths := make([]string, len(patches))
	for i := range patches {
		paths[i] = patches[i].Operation + " " + patches[i].Path
	}
	return paths
}

func jsonValue(obj any) (any, error) {
	bytes, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var value any
	return value, json.Unmarshal(bytes, &value)
}

// carryOver makes in original the change from before to after. original has more in it than before: what the Go type does not know.
func carryOver(original, before, after any) any {
	if equality.Semantic.DeepEqual(before, after) {
		return original
	}
	switch after := after.(type) {
	case map[string]any:
		originalMap, ok := original.(map[string]any)
		beforeMap, okBefore := before.(map[string]any)
		if !ok || !okBefore {
			return after
		}
		merged := make(map[string]any, len(originalMap))
		for key, value := range originalMap {
			_, known := beforeMap[key]
			if _, kept := after[key]; kept || !known {
				merged[key] = value
			}
		}
		for key, value := range after {
			if was, known := beforeMap[key]; known {
				if _, present := originalMap[key]; !present && equality.Semantic.DeepEqual(was, value) {
					continue // a zero value that only the Go type writes out
				}
				merged[key] = carryOver(originalMap[key], was, value)
			} else {
				merged[key] = value
			}
		}
		return merged
	case []any:
		originalList, ok := original.([]any)
		beforeList, okBefore := before.([]any)
		if !ok || !okBefore || len(originalList) != len(beforeList) {
			return after
		}
		return carryOverList(originalList, beforeList, after)
	default:
		return after
	}
}

// carryOverList matches the items of a list with those before: the ones that have not changed, else the ones of the same name, else, in a list that has
// kept its length, the ones in the same place.
func carryOverList(original, before, after []any) []any {
	merged := make([]any, len(after))
	for i, item := range after {
		merged[i] = item
		if j := matchingItem(before, item, i, len(before) == len(after)); j >= 0 {
			merged[i] = carryOver(original[j], before[j], item)
		}
	}
	return merged
}

func matchingItem(before []any, item any, place int, sameLength bool) int {
	for j := range before {
		if equality.Semantic.DeepEqual(before[j], item) {
			return j
		}
	}
	if fields, ok := item.(map[string]any); ok && fields["name"] != nil {
		for j := range before {
			if was, ok := before[j].(map[string]any); ok && was["name"] == fields["name"] {
				return j
			}
		}
		return -1
	}
	if sameLength {
		return place
	}
	return -1
}
