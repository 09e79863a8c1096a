// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// document is a part of an object.
type document = map[string]any

func TestMergeChanges(t *testing.T) {
	tests := map[string]struct {
		reason             string
		base, theirs, ours document
		want               document
	}{
		"Nothing": {"", document{"a": "1"}, document{"a": "1"}, document{"a": "1"}, document{"a": "1"}},
		"Ours": {
			"they have not touched it",
			document{"a": "1"},
			document{"a": "1"},
			document{"a": "2", "b": "3"},
			document{"a": "2", "b": "3"},
		},
		"Theirs": {
			"we have not touched it",
			document{"a": "1"},
			document{"a": "2", "b": "3"},
			document{"a": "1"},
			document{"a": "2", "b": "3"},
		},
		"Both":    {"our change wins", document{"a": "1"}, document{"a": "2"}, document{"a": "3"}, document{"a": "3"}},
		"Removed": {"by us, and by them", document{"a": "1", "b": "2"}, document{"a": "1"}, document{"b": "2"}, document{}},
		"Nested": {
			"fields are merged at every depth",
			document{"m": document{"a": "1", "b": "1"}},
			document{"m": document{"a": "2", "b": "1"}},
			document{"m": document{"a": "1", "b": "2"}},
			document{"m": document{"a": "2", "b": "2"}},
		},
		"Items": {
			"items of lists of one length, too",
			document{"l": []any{document{"a": "1"}, "x"}},
			document{"l": []any{document{"a": "1", "b": "2"}, "x"}},
			document{"l": []any{document{"a": "1"}, "y"}},
			document{"l": []any{document{"a": "1", "b": "2"}, "y"}},
		},
		"Lists": {
			"items of other clients cannot be distinguished",
			document{"l": []any{"x"}},
			document{"l": []any{"x", "theirs"}},
			document{"l": []any{"y"}},
			document{"l": []any{"y"}},
		},
		"LongerList": {
			"a list that we have not touched is theirs",
			document{"l": []any{"x"}},
			document{"l": []any{"x", "theirs"}},
			document{"l": []any{"x"}},
			document{"l": []any{"x", "theirs"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, mergeChanges(tt.base, tt.theirs, tt.ours)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestOverlay(t *testing.T) {
	base := document{"a": "1", "m": document{"b": "2", "c": "3"}, "l": []any{"x", "y"}, "removed": document{"d": "4"}}
	got := overlay(base, document{
		"m": document{"c": "changed", "new": document{"e": "5", "none": nil}}, "l": []any{"z"}, "removed": nil, "absent": nil,
	})
	want := document{"a": "1", "m": document{"b": "2", "c": "changed", "new": document{"e": "5"}}, "l": []any{"z"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if base["l"].([]any)[0] != "x" || base["m"].(document)["c"] != "3" {
		t.Errorf("the base has changed: %v", base)
	}
}
