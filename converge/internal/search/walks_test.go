// SPDX-License-Identifier: Apache-2.0

package search

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/walk"
	"trueup.dev/internal/memapi/specs"
)

// TestWalks finds what a change leaves behind, with the fewest and smallest changes.
func TestWalks(t *testing.T) {
	var values []specs.Value
	for _, size := range []int64{1, 2, 3} {
		values = append(values, specs.Value{Content: size})
	}
	valueOf := func(s walk.Spec, path, otherwise string) string {
		for _, change := range s.Changes {
			if change.Path.String() == path {
				return change.Value.String()
			}
		}
		return otherwise
	}
	sizeOf := func(s walk.Spec) string { return valueOf(s, "spec.size", "1") }
	keyOf := func(s walk.Spec) string { return sizeOf(s) + valueOf(s, "spec.color", "") }
	x := &Walks{
		Properties: []specs.Property{
			{Path: specs.Path{"spec", "size"}, Values: values},
			{Path: specs.Path{"spec", "color"}, Values: []specs.Value{{Content: "red"}}},
		},
		Stored:    func(s walk.Spec) (string, bool) { return keyOf(s), true },
		Accepted:  func(s walk.Spec) (string, bool) { return keyOf(s), sizeOf(s) != "2" },
		Affects:   func(one, other walk.Spec) bool { return sizeOf(one) != sizeOf(other) },
		OnEffect:  func(*Property) {},
		OutOf:     func(float64) bool { return false },
		Affecting: map[string]bool{},
		Run: func(w walk.Walk) (finding.Violation, int, bool) {
			for i := range w[:max(len(w)-1, 0)] {
				if sizeOf(w[i]) == "3" && sizeOf(w[i+1]) == "1" && !w[i+1].Deleted {
					return finding.Violation{About: "it"}, i + 2, true
				}
			}
			return finding.Violation{}, len(w), false
		},
	}
	if f := x.Start(); f != nil {
		t.Fatalf("the object as it is fails: %v", f.Candidate.Describe(nil))
	}
	f := x.Single()
	if f == nil {
		t.Fatal("not found")
	}
	want := []string{"create with spec.size = 3", "spec.size as at first"}
	if diff := cmp.Diff(want, f.Candidate.Describe(nil)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if x.Changed != 2 || x.Values != 2 || x.Rejected != 1 || x.PairsInAll != 0 {
		t.Errorf("counts %+v", x.WalkCounts)
	}
}
