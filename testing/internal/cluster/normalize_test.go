// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNormalizer(t *testing.T) {
	tests := map[string]struct {
		reason             string
		exchanges          []exchange
		expected, observed document
		want               document
		removed            []string
	}{
		"Default": {
			"fields that only the server has added are removed",
			[]exchange{{document{"a": "1"}, document{"a": "1", "d": "default"}}},
			document{"a": "1"},
			document{"a": "1", "d": "default"},
			document{"a": "1"},
			[]string{`d = "default"`},
		},
		"Changed": {
			"not the value of the server",
			[]exchange{{document{}, document{"d": "default"}}},
			document{},
			document{"d": "other"},
			document{"d": "other"},
			nil,
		},
		"Expected": {
			"expected, so compared",
			[]exchange{{document{}, document{"d": "default"}}},
			document{"d": "default"},
			document{"d": "default"},
			document{"d": "default"},
			nil,
		},
		"ExpectedOther": {
			"expected to be something else",
			[]exchange{{document{}, document{"d": "default"}}},
			document{"d": "mine"},
			document{"d": "default"},
			document{"d": "default"},
			nil,
		},
		"Sent": {
			"the case has sent it",
			[]exchange{{document{"d": "x"}, document{"d": "x"}}},
			document{},
			document{"d": "x"},
			document{"d": "x"},
			nil,
		},
		"Unknown": {
			"its origin is unknown", nil,
			document{},
			document{"d": "x"},
			document{"d": "x"},
			nil,
		},
		"Later": {
			"the server adds it in a later write",
			[]exchange{{document{}, document{}}, {document{"a": "1"}, document{"a": "1", "d": "default"}}},
			document{"a": "1"},
			document{"a": "1", "d": "default"},
			document{"a": "1"},
			[]string{`d = "default"`},
		},
		"Nested": {
			"in structs, which Go types do not leave out",
			[]exchange{{document{"m": document{}}, document{"m": document{"d": int64(3)}}}},
			document{"m": document{}},
			document{"m": document{"d": int64(3)}},
			document{"m": document{}},
			[]string{`m = {"d":3}`},
		},
		"NestedAbsent": {
			"in structs that are not expected at all",
			[]exchange{{document{"m": document{"a": document{}}}, document{"m": document{"a": document{"d": "x"}}}}},
			document{},
			document{"m": document{"a": document{"d": "x"}}},
			document{},
			[]string{`m = {"a":{"d":"x"}}`},
		},
		"Zero": {
			"servers read zero as no value, and so does the case",
			[]exchange{{document{"n": int64(0)}, document{"n": int64(80)}}},
			document{"n": int64(0)},
			document{"n": int64(80)},
			document{"n": int64(0)},
			[]string{"n = 80"},
		},
		"Items": {
			"in items of lists",
			[]exchange{{document{"l": []any{document{"n": "x"}}}, document{"l": []any{document{"n": "x", "d": "default"}}}}},
			document{"l": []any{document{"n": "x"}}},
			document{"l": []any{document{"n": "x", "d": "default"}}},
			document{"l": []any{document{"n": "x"}}},
			[]string{`l[0].d = "default"`},
		},
		"Appended": {
			"items at the end of lists",
			[]exchange{{document{"l": []any{"x"}}, document{"l": []any{"x", "added"}}}},
			document{"l": []any{"x"}},
			document{"l": []any{"x", "added"}},
			document{"l": []any{"x"}},
			[]string{`l[1] = "added"`},
		},
		"AppendedByCase": {
			"not those that the reconciler has appended",
			[]exchange{{document{"l": []any{"x"}}, document{"l": []any{"x", "added"}}}},
			document{"l": []any{"x"}},
			document{"l": []any{"x", "added", "mine"}},
			document{"l": []any{"x", "added", "mine"}},
			nil,
		},
		"AppendedTwice": {
			"not some of the items",
			[]exchange{
				{document{"l": []any{"x"}}, document{"l": []any{"x", "mine", "added"}}},
				{document{"l": []any{"x", "mine"}}, document{"l": []any{"x", "mine", "added"}}},
			},
			document{"l": []any{"x"}},
			document{"l": []any{"x", "other", "added"}},
			document{"l": []any{"x", "other", "added"}},
			nil,
		},
		"Missing": {
			"missing fields are not added",
			[]exchange{{document{"l": []any{"x"}}, document{"l": []any{"x"}}}},
			document{"l": []any{"x", "y"}},
			document{"l": []any{"x"}},
			document{"l": []any{"x"}},
			nil,
		},
		"Path": {
			"names with dots and slashes are quoted",
			[]exchange{{document{}, document{"m": document{"example.com/x": true}}}},
			document{"m": document{"b": "1"}},
			document{"m": document{"b": "1", "example.com/x": true}},
			document{"m": document{"b": "1"}},
			[]string{`m["example.com/x"] = true`},
		},
		"Empty": {
			"empty fields are removed without a note",
			[]exchange{{document{}, document{"m": document{}}}},
			document{},
			document{"m": document{}},
			document{},
			nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := &normalizer{}
			got := n.fields("", tt.expected, tt.observed, tt.exchanges)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(tt.removed, n.removed); diff != "" {
				t.Errorf("what was removed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAdditions(t *testing.T) {
	sent := document{"a": "1", "m": document{"b": "2"}, "l": []any{document{"n": "x"}, "y"}, "zero": int64(0)}
	got := document{
		"a": "2", "m": document{"b": "2", "d": document{"e": "f"}}, "l": []any{
			document{"n": "x", "d": true}, "y", "z",
		}, "zero": int64(7), "none": document{},
	}
	want := []string{`l[0].d = true`, `l[2] = "z"`, `m.d = {"e":"f"}`, `zero = 7`}
	if diff := cmp.Diff(want, additions("", sent, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
