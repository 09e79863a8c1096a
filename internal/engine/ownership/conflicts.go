// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Resolve calls keep for each desired field whose stored value differs and which another owner has: the API server
// refuses to change such a field, unless the request is forced. It returns desired without the fields for which keep
// returned false. It changes none of its arguments.
func Resolve(
	desired, stored map[string]any, others []metav1.ManagedFieldsEntry,
	keep func(path string, owner metav1.ManagedFieldsEntry) bool,
) map[string]any {
	for _, entry := range others {
		r := resolver{keep: func(path string) bool { return keep(path, entry) }}
		desired = r.object("", desired, stored, FieldsOf(entry), nil)
	}
	return desired
}

type resolver struct{ keep func(path string) bool }

// value returns the part of a desired value that stays desired, and whether any of it does.
func (r resolver) value(path string, desired, stored any, owned Fields, keys *item) (kept any, ok bool) {
	if owned.whole() {
		return desired, same(desired, stored) || r.keep(path)
	}
	switch wanted := desired.(type) {
	case map[string]any:
		content, _ := stored.(map[string]any)
		return r.object(path, wanted, content, owned, keys), true
	case []any:
		content, _ := stored.([]any)
		return r.list(path, wanted, content, owned), true
	}
	return desired, true
}

func (r resolver) object(path string, desired, stored map[string]any, owned Fields, keys *item) map[string]any {
	kept := maps.Clone(desired)
	for name, value := range desired {
		fields, ok := owned.below("f:" + name)
		if !ok || keys != nil && keys.hasKey(name) {
			continue
		}
		if part, ok := r.value(path+"."+name, value, stored[name], fields, nil); ok {
			kept[name] = part
		} else {
			delete(kept, name)
		}
	}
	return kept
}

func (r resolver) list(path string, desired, stored []any, owned Fields) []any {
	items := owned.items()
	kept := make([]any, len(desired))
	for i, value := range desired {
		kept[i] = value
		it := find(items, value, true)
		if it == nil {
			it = find(items, value, false)
		}
		if it == nil || !it.isKey || len(it.fields) == 0 {
			continue
		}
		it.used = true
		if place := it.in(stored); place >= 0 {
			kept[i], _ = r.value(path+it.String(), value, stored[place], it.fields, it)
		}
	}
	return kept
}
