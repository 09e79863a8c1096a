// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"bytes"
	"encoding/json"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference/operations"
)

// admissionPatch returns a JSON patch to raw. The patch makes the change from received, which was decoded from raw, to
// changed. Operations are sorted by path unless their order matters. Values have the Go types that encoding/json
// decodes to, except for numbers that a float64 cannot represent.
func admissionPatch(raw []byte, received, changed client.Object) ([]jsonpatch.Operation, error) {
	original, err := decodeJSON(raw)
	if err != nil {
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
	patch, err := jsonpatch.CreatePatch(raw, merged)
	if err != nil {
		return nil, err
	}
	return operations.WithPlainNumbers(operations.InOrder(patch, original)), nil
}

// patchedPaths returns the operations and paths of a patch for logs. Values may be secret.
func patchedPaths(patches []jsonpatch.Operation) []string {
	paths := make([]string, len(patches))
	for i := range patches {
		paths[i] = patches[i].Operation + " " + patches[i].Path
	}
	return paths
}

func jsonValue(obj any) (any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return decodeJSON(data)
}

// decodeJSON decodes numbers as json.Number. A float64 cannot represent every int64, and the patch would contain the
// rounded number.
func decodeJSON(data []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

// carryOver applies the change from before to after to original. original also contains the fields that the Go type
// does not have. original and before are nil if the field does not exist.
func carryOver(original, before, after any) any {
	if equality.Semantic.DeepEqual(before, after) {
		return original
	}
	switch after := after.(type) {
	case map[string]any:
		originalMap, ok := original.(map[string]any)
		beforeMap, okBefore := before.(map[string]any)
		if !ok && original != nil || !okBefore && before != nil {
			return after
		}
		return carryOverMap(originalMap, beforeMap, after)
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

func carryOverMap(original, before, after map[string]any) map[string]any {
	merged := make(map[string]any, len(original))
	for key, value := range original {
		_, known := before[key]
		if _, kept := after[key]; kept || !known {
			merged[key] = value
		}
	}
	for key, value := range after {
		was, known := before[key]
		if _, present := original[key]; known && !present && equality.Semantic.DeepEqual(was, value) {
			continue // a zero value that only the Go type writes out
		}
		merged[key] = carryOver(original[key], was, value)
	}
	return merged
}

// carryOverList matches each item with at most one previous item. It prefers an equal item in the same position, then
// an equal item, then an item of the same name. In a list of unchanged length it finally matches items by position.
func carryOverList(original, before, after []any) []any {
	matches := make([]int, len(after))
	for i := range matches {
		matches[i] = -1
	}
	taken := make([]bool, len(before))
	match := func(matching func(i, j int) bool) {
		for i := range after {
			for j := 0; j < len(before) && matches[i] < 0; j++ {
				if !taken[j] && matching(i, j) {
					matches[i], taken[j] = j, true
				}
			}
		}
	}
	same := func(i, j int) bool { return equality.Semantic.DeepEqual(before[j], after[i]) }
	match(func(i, j int) bool { return i == j && same(i, j) })
	match(same)
	// A name identifies an item only if it is unique.
	names := uniqueNames(before, after)
	match(func(i, j int) bool { return names.Has(itemName(after[i])) && itemName(before[j]) == itemName(after[i]) })
	if len(before) == len(after) {
		match(func(i, j int) bool { return i == j && itemName(before[j]) == itemName(after[i]) })
	}

	merged := make([]any, len(after))
	for i, item := range after {
		merged[i] = item
		if j := matches[i]; j >= 0 {
			merged[i] = carryOver(original[j], before[j], item)
		}
	}
	return merged
}

// uniqueNames returns the names that occur at most once in each list.
func uniqueNames(lists ...[]any) sets.Set[string] {
	names, twice := sets.New[string](), sets.New("")
	for _, list := range lists {
		seen := sets.New[string]()
		for _, item := range list {
			if name := itemName(item); seen.Has(name) {
				twice.Insert(name)
			} else {
				seen.Insert(name)
			}
		}
		names = names.Union(seen)
	}
	return names.Difference(twice)
}

// itemName returns the name of a list item, or "" if the item has no name.
func itemName(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}
