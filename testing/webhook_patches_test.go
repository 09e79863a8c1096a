// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
)

func TestInOrder(t *testing.T) {
	tests := map[string]struct {
		reason      string
		given, want []string
	}{
		"Fields": {
			reason: "fields are sorted, those of the same object together",
			given:  []string{"/spec", "/metadata/labels/b", "/metadata/annotations", "/metadata/labels/a"},
			want:   []string{"/metadata/annotations", "/metadata/labels/a", "/metadata/labels/b", "/spec"},
		},
		"List": {
			reason: "an index depends on what was done to the list before",
			given:  []string{"/spec/b/2", "/spec/b/1", "/spec/b/-", "/spec/b/0/name", "/spec/a"},
			want:   []string{"/spec/a", "/spec/b/2", "/spec/b/1", "/spec/b/-", "/spec/b/0/name"},
		},
		"Parent": {
			reason: "it matters whether a value is set before or after a part of it",
			given:  []string{"/spec/b", "/spec/b/x", "/spec/a"},
			want:   []string{"/spec/b", "/spec/b/x", "/spec/a"},
		},
		"None": {reason: "nothing remains nothing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var patches []jsonpatch.Operation
			for _, path := range tt.given {
				patches = append(patches, jsonpatch.NewOperation("add", path, nil))
			}
			var got []string
			for _, patch := range inOrder(patches) {
				got = append(got, patch.Path)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}
