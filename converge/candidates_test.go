// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/search"
)

// TestSinglesAreSampled checks that a search that would take too long tries a sample, says so, and tries the same each
// time: first each fault at the first request or event of each kind.
func TestSinglesAreSampled(t *testing.T) {
	s := copierScenario(false)
	a := newSecret("a")
	s.Steps = Steps(Apply(a), Settle())
	for n := range 5 {
		value := fmt.Append(nil, n)
		s.Steps = append(s.Steps, Change(a, func(secret *corev1.Secret) { secret.Data["value"] = value }), Settle())
	}
	all, err := Check(t, s, Options{Seed: 1})
	if err != nil || all.Failure != nil {
		t.Fatal(all.Failure, err)
	}
	if all.Certificate.SinglesLeft != 0 || !strings.HasPrefix(all.Certificate.String(), "converges under every single") {
		t.Errorf("without a limit, not all single faults are tried: %s", all.Certificate)
	}
	sample := func() *Report {
		report, err := Check(t, s, Options{Seed: 1, SingleRequests: 1})
		if err != nil || report.Failure != nil {
			t.Fatal(report.Failure, err)
		}
		return report
	}
	one, two := sample().Certificate, sample().Certificate
	one.Elapsed, two.Elapsed = 0, 0
	if diff := cmp.Diff(one.String(), two.String()); diff != "" {
		t.Errorf("two samples differ: %s", diff)
	}
	total := all.Certificate.Singles
	if one.Singles != fewest || one.Singles+one.SinglesLeft != total {
		t.Errorf("got %d single faults and %d left, want %d of %d", one.Singles, one.SinglesLeft, fewest, total)
	}
	want := fmt.Sprintf("converges under %d of %d single faults", fewest, total)
	if !strings.HasPrefix(one.String(), want) || !strings.Contains(one.String(), "-converge.singles") {
		t.Errorf("the certificate is not that of a sample: %s", one)
	}
}

// TestSampleBeginsWithEachKind checks the order of candidates, and that samples are evenly spread.
func TestSampleBeginsWithEachKind(t *testing.T) {
	p := mustPlan(t, copierScenario(false))
	reference, _ := p.refer(t)
	found := inject.CandidatesOf(reference.Points)
	rounds := inject.RoundsOf(found)
	var order []int
	for _, d := range found {
		order = append(order, rounds(d))
	}
	if !slices.IsSorted(order) || order[0] != inject.FirstOfKind || order[len(order)-1] != inject.Repeated {
		t.Errorf("the rounds are %v", order)
	}
	others := slices.DeleteFunc(
		slices.Clone(found), func(d inject.Deviation) bool { return rounds(d) == inject.FirstOfKind },
	)
	first := len(found) - len(others)
	chosen := search.Sample(found, first+3, rounds)
	if len(chosen) != first+3 {
		t.Errorf("the sample has %d faults, want %d", len(chosen), first+3)
	}
	kinds := map[string]bool{}
	for _, d := range chosen {
		kinds[fmt.Sprint(d.Fault, d.Act, d.Kind)] = true
	}
	for _, d := range found {
		if !kinds[fmt.Sprint(d.Fault, d.Act, d.Kind)] {
			t.Errorf("%s is not in the sample, nor at another point of the kind", d)
		}
	}
}
