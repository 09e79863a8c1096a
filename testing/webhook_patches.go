// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"cmp"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

// inOrder returns the operations in an order that does not depend on chance. What makes patches from two documents goes through maps, so the order of
// operations on different fields is another one each time; it is without effect. That of operations on the same list is kept, and so are all where one
// operation is on a value that another one is inside of.
func inOrder(patches []jsonpatch.Operation) []jsonpatch.Operation {
	for _, a := range patches {
		for _, b := range patches {
			if strings.HasPrefix(patchedField(a), patchedField(b)+"/") {
				return patches
			}
		}
	}
	return slices.SortedStableFunc(slices.Values(patches), func(a, b jsonpatch.Operation) int { return cmp.Compare(patchedField(a), patchedField(b)) })
}

// patchedField returns the path of an operation up to the first list.
func patchedField(patch jsonpatch.Operation) string {
	segments := strings.Split(patch.Path, "/")
	if i := slices.IndexFunc(segments, isIndex); i >= 0 {
		segments = segments[:i]
	}
	return strings.Join(segments, "/")
}

// isIndex is true for what may be an index of a list, or stand for its end.
func isIndex(segment string) bool {
	return segment == "-" || segment != "" && strings.Trim(segment, "0123456789") == ""
}
