// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

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
		return converges(t, s, Options{Seed: 1, SingleRequests: 1})
	}
	one, two := sample().Certificate, sample().Certificate
	one.Elapsed, two.Elapsed = 0, 0
	if diff := cmp.Diff(one.String(), two.String()); diff != "" {
		t.Errorf("two samples differ: %s", diff)
	}
	total := all.Certificate.Singles
	if one.Singles != search.Fewest || one.Singles+one.SinglesLeft != total {
		t.Errorf("got %d single faults and %d left, want %d of %d", one.Singles, one.SinglesLeft, search.Fewest, total)
	}
	want := fmt.Sprintf("converges under %d of %d single faults", search.Fewest, total)
	if !strings.HasPrefix(one.String(), want) || !strings.Contains(one.String(), "-converge.singles") {
		t.Errorf("the certificate is not that of a sample: %s", one)
	}
}
