// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProblems(t *testing.T) {
	expected := outcome{Specs: 3, Failed: []failures{
		{Reason: "always", Specs: []string{"a"}}, {Reason: "sometimes", Race: true, Specs: []string{"b"}},
	}}
	for name, c := range map[string]struct {
		specs []spec
		want  []string
	}{
		"as expected":      {specs("failed", "failed", "passed"), nil},
		"a race is lost":   {specs("failed", "passed", "passed"), nil},
		"a failure is new": {specs("failed", "passed", "timedout"), []string{"fails: c\nf.go:7: wrong"}},
		"a failure is gone": {
			specs("passed", "failed", "passed"), []string{"passes although it is listed as failing: a"},
		},
		"a spec is gone": {
			specs("failed", "passed"), []string{"2 specs, 0 pending and 0 skipped, want 3, 0 and 0"},
		},
		"a spec is skipped": {
			specs("failed", "passed", "skipped"), []string{"2 specs, 0 pending and 1 skipped, want 3, 0 and 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, failed := summarize(c.specs)
			if diff := cmp.Diff(c.want, expected.problems(got, failed)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	before := outcome{Failed: []failures{
		{Reason: "always", Specs: []string{"a", "gone"}},
		{Reason: "sometimes", Race: true, Specs: []string{"b"}},
		{Reason: "nothing left", Specs: []string{"old"}},
	}}
	want := outcome{Specs: 3, Failed: []failures{
		{Reason: "always", Specs: []string{"a"}},
		{Reason: "sometimes", Race: true, Specs: []string{"b"}},
		{Specs: []string{"c"}},
	}}
	if diff := cmp.Diff(want, before.merge(summarize(specs("failed", "passed", "panicked")))); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// specs returns the specs a, b and so on with these states.
func specs(states ...string) []spec {
	found := []spec{{LeafNodeType: "BeforeSuite", State: "passed"}}
	for i, state := range states {
		s := spec{LeafNodeType: "It", LeafNodeText: string(rune('a' + i)), State: state}
		s.Failure.Message, s.Failure.Location.FileName, s.Failure.Location.LineNumber = "wrong", "f.go", 7
		found = append(found, s)
	}
	return found
}
