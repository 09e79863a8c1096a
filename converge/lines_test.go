// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/converge/internal/explain"
)

// checkLines checks that a timeline shows the violation, the last writes before it and what the hint is based on, and
// that it is short.
func checkLines(t *testing.T, f *Failure) {
	t.Helper()
	x := f.explained()
	lines := x.Lines()
	if n := strings.Count(f.Timeline(), "\n") - 1; n > explain.MaxLines {
		t.Errorf("the timeline has %d lines:\n%s", n, f)
	}
	var violations []int
	for i, e := range f.log.Entries {
		if e.Mark == explain.HarmMark {
			violations = append(violations, i)
		}
	}
	if len(violations) == 0 {
		t.Errorf("the timeline has no violation:\n%s", f)
	}
	var proof []int
	if len(f.proof) > 0 {
		proof = []int{slices.Max(f.proof)} // a loop has more lines than there is room for
	}
	for what, want := range map[string][]int{
		"the violation": violations, "the last writes": x.Decisive(), "what the hint is based on": proof,
	} {
		for _, i := range want {
			if !slices.Contains(lines, i) {
				t.Errorf("line %d is not shown, which is %s:\n%s\n%s", i+1, what, f, f.FullTimeline())
			}
		}
	}
}

// TestLines_lastWrites finds a violation long after the first writes, which filled timelines once.
func TestLines_lastWrites(t *testing.T) {
	s := copierScenario(false)
	a := newSecret("a")
	s.Steps = Steps(Apply(a), Settle())
	for n := range 20 {
		value := []byte{byte('a' + n)}
		s.Steps = append(s.Steps, Change(a, func(secret *corev1.Secret) { secret.Data["value"] = value }), Settle())
	}
	f := recorded(t, s, "v1:1:child-deleted@quiet:ConfigMap:default/a:19")
	f.Violation = Violation{Oracle: OracleEndState, Cause: CauseMissing, About: "ConfigMap default/a"}
	f.log.Entries = append(f.log.Entries, explain.Entry{Who: "check", Mark: explain.HarmMark})
	f.explainMistake()
	checkLines(t, f)
	var last int
	for i, e := range f.log.Entries {
		if e.Effect && e.Object == "ConfigMap default/a" {
			last = i
		}
	}
	if !slices.Contains(f.explained().Lines(), last) || last < 100 {
		t.Errorf("the last write, line %d, is not shown:\n%s", last+1, f)
	}
}
