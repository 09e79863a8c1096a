// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"

	"trueup.dev/internal/difference/operations"
)

func TestInOrder(t *testing.T) {
	tests := map[string]struct {
		reason      string
		document    string
		given, want []string
	}{
		"Fields": {
			reason: "fields are sorted, those of the same object together",
			given:  []string{"add /spec", "add /metadata/labels/b", "add /metadata/annotations", "add /metadata/labels/a"},
			want:   []string{"add /metadata/annotations", "add /metadata/labels/a", "add /metadata/labels/b", "add /spec"},
		},
		"FieldsOfItems": {
			reason: "fields of an item are sorted as fields of an object, and items that do not move are independent",
			given:  []string{"add /l/10/b", "add /l/2/b", "replace /l/10/a", "add /l/2/a", "replace /l/0"},
			want:   []string{"replace /l/0", "add /l/2/a", "add /l/2/b", "replace /l/10/a", "add /l/10/b"},
		},
		"MovedItems": {
			reason: "an index depends on earlier operations on the list",
			given: []string{
				"remove /b/2",
				"remove /b/1",
				"add /b/-",
				"add /b/0/y",
				"add /b/0/x",
				"add /b/0",
				"add /b/0/name",
				"add /a",
			},
			want: []string{
				"add /a",
				"remove /b/2",
				"remove /b/1",
				"add /b/-",
				"add /b/0/x",
				"add /b/0/y",
				"add /b/0",
				"add /b/0/name",
			},
		},
		"Parent": {
			reason: "the order of a value and a part of it is kept, other operations are sorted",
			given:  []string{"add /spec/b", "add /spec/b/x", "remove /spec/b/a", "add /spec/a", "add /metadata"},
			want:   []string{"add /metadata", "add /spec/a", "add /spec/b", "add /spec/b/x", "remove /spec/b/a"},
		},
		"NumbersAsKeys": {
			reason:   "the document distinguishes a map from a list",
			document: `{"data":{"1":"x"},"list":[{"1":{"0":1}},{"2":[1,2]}]}`,
			given: []string{
				"add /data/2",
				"remove /data/1",
				"add /data/10",
				"replace /list/0/1/0",
				"add /list/0/1/~10",
				"remove /list/1/2/1",
				"remove /list/1/2/0",
			},
			want: []string{
				"remove /data/1",
				"add /data/10",
				"add /data/2",
				"replace /list/0/1/0",
				"add /list/0/1/~10",
				"remove /list/1/2/1",
				"remove /list/1/2/0",
			},
		},
		"EscapedKeys": {
			reason:   "keys are found in the document as they are without escapes",
			document: `{"a/b~c":{"0":1}}`,
			given:    []string{"add /a~1b~0c/1", "remove /a~1b~0c/0"},
			want:     []string{"remove /a~1b~0c/0", "add /a~1b~0c/1"},
		},
		"Whole": {
			reason: "all paths are inside the document itself",
			given:  []string{"replace ", "add /b", "add /a"},
			want:   []string{"replace ", "add /b", "add /a"},
		},
		"Test": {
			reason: "a test operation guards the following operations",
			given:  []string{"test /b", "add /a"},
			want:   []string{"test /b", "add /a"},
		},
		"None": {reason: "an empty patch stays empty"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var document any
			if tt.document != "" {
				if err := json.Unmarshal([]byte(tt.document), &document); err != nil {
					t.Fatal(err)
				}
			}
			var patch []jsonpatch.Operation
			for _, text := range tt.given {
				verb, path, _ := strings.Cut(text, " ")
				patch = append(patch, jsonpatch.NewOperation(verb, path, nil))
			}
			var got []string
			for _, operation := range operations.InOrder(patch, document) {
				got = append(got, operation.Operation+" "+operation.Path)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// TestInOrder_DoesNotDependOnChance sorts patches of the same two documents, whose operations have a different order
// each time.
func TestInOrder_DoesNotDependOnChance(t *testing.T) {
	const (
		before = `{"m":{"1":1,"2":2,"3":3,"4":4},"l":[{"a":1,"b":2,"c":3},{"a":1},{"a":2},{"z":0}]}`
		after  = `{"m":{"2":0,"3":0,"5":5,"6":6},"l":[{"a":0,"b":0,"d":3},{"b":1,"c":0}]}`
	)
	var document any
	if err := json.Unmarshal([]byte(before), &document); err != nil {
		t.Fatal(err)
	}
	orders := map[string]bool{}
	for range 100 {
		patch, err := jsonpatch.CreatePatch([]byte(before), []byte(after))
		if err != nil {
			t.Fatal(err)
		}
		orders[fmt.Sprint(operations.InOrder(patch, document))] = true
	}
	if len(orders) != 1 {
		t.Errorf("want one order, got %d", len(orders))
	}
}

func TestWithPlainNumbers(t *testing.T) {
	number := func(text string) json.Number { return json.Number(text) }
	given := []jsonpatch.Operation{
		{Operation: "add", Path: "/a", Value: number("420")},
		{
			Operation: "add",
			Path:      "/b",
			Value:     map[string]any{"list": []any{number("0.5"), "420", nil, true}, "mode": number("-1")},
		},
		{
			Operation: "add",
			Path:      "/c",
			Value:     []any{number("9007199254740993"), number("9223372036854775807"), number("1.50"), number("1e400")},
		},
		{Operation: "remove", Path: "/d"},
	}
	want := slices.Clone(given)
	want[0].Value = float64(420)
	want[1].Value = map[string]any{"list": []any{0.5, "420", nil, true}, "mode": float64(-1)}
	// Numbers that a float64 cannot represent, and numbers with another spelling, are kept unchanged.
	want[2].Value = []any{number("9007199254740993"), number("9223372036854775807"), number("1.50"), number("1e400")}
	if diff := cmp.Diff(want, operations.WithPlainNumbers(given)); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}
