// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An edit has the same effect on an object and in patches.
func TestEdits(t *testing.T) {
	content := Object{
		"metadata": Object{"labels": Object{"app": "x", "a/b": "y"}},
		"spec":     Object{"items": []any{Object{"name": "one", "size": int64(1)}, Object{"name": "two"}}},
	}
	for name, test := range map[string]struct {
		edit    Edit
		edited  Object // nil: the spec is not changed
		merging Object
		pointer Object
	}{
		"a field is set": {
			edit:    Set("spec/size", int64(3)),
			edited:  Object{"items": content["spec"].(Object)["items"], "size": int64(3)},
			merging: Object{"spec": Object{"size": int64(3)}},
			pointer: Object{"op": "add", "path": "/spec/size", "value": int64(3)},
		},
		"missing parents of a field are created": {
			edit:    Set("spec/a/b", "c"),
			edited:  Object{"items": content["spec"].(Object)["items"], "a": Object{"b": "c"}},
			merging: Object{"spec": Object{"a": Object{"b": "c"}}},
			pointer: Object{"op": "add", "path": "/spec/a/b", "value": "c"},
		},
		"a field is removed": {
			edit:    Remove("spec/items"),
			edited:  Object{},
			merging: Object{"spec": Object{"items": nil}},
			pointer: Object{"op": "remove", "path": "/spec/items"},
		},
		"an element is changed": {
			edit:    Set("spec/items/[name=one]/size", int64(2)),
			edited:  Object{"items": []any{Object{"name": "one", "size": int64(2)}, Object{"name": "two"}}},
			merging: Object{"spec": Object{"items": []any{Object{"name": "one", "size": int64(2)}}}},
			pointer: Object{"op": "add", "path": "/spec/items/0/size", "value": int64(2)},
		},
		"an element is added": {
			edit: Set("spec/items/[name=three]", Object{"name": "three"}),
			edited: Object{
				"items": []any{Object{"name": "one", "size": int64(1)}, Object{"name": "two"}, Object{"name": "three"}},
			},
			merging: Object{"spec": Object{"items": []any{Object{"name": "three"}}}},
			pointer: Object{"op": "add", "path": "/spec/items/0", "value": Object{"name": "three"}},
		},
		"an element is removed": {
			edit:    Remove("spec/items/[name=one]"),
			edited:  Object{"items": []any{Object{"name": "two"}}},
			merging: Object{"spec": Object{"items": []any{Object{"name": "one", "$patch": "delete"}}}},
			pointer: Object{"op": "remove", "path": "/spec/items/0"},
		},
		"a slash is part of a name": {
			edit:    Remove("metadata/labels/a~1b"),
			merging: Object{"metadata": Object{"labels": Object{"a/b": nil}}},
			pointer: Object{"op": "remove", "path": "/metadata/labels/a~1b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := edited(content, []Edit{test.edit})
			want := test.edited
			if want == nil {
				want = content["spec"].(Object)
			}
			if diff := cmp.Diff(any(want), after["spec"]); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.merging, merging([]Edit{test.edit})); diff != "" {
				t.Errorf("merge patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]any{test.pointer}, pointing([]Edit{test.edit})); diff != "" {
				t.Errorf("JSON patch (-want +got):\n%s", diff)
			}
		})
	}
	if labels := edited(content, []Edit{
		Remove("metadata/labels/a~1b"),
	})["metadata"].(Object)["labels"]; cmp.Diff(any(Object{"app": "x"}), labels) != "" {
		t.Errorf("labels without the one with a slash: got %v", labels)
	}
	if len(content["spec"].(Object)["items"].([]any)) != 2 {
		t.Error("the edits changed their input")
	}
}
