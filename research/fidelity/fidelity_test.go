// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	sequences = flag.Int("fidelity.sequences", 400, "how many sequences are compared")
	seed      = flag.Uint64("fidelity.seed", 1, "the seed of the first sequence")
	parallel  = flag.Int("fidelity.parallel", 8, "how many sequences run at a time")
	shrunk    = flag.Int("fidelity.shrink", 10, "how many divergences are shrunk")
	out       = flag.String("fidelity.out", "", "a file that the report is written to as well")
	kindNames = flag.String("fidelity.kinds", "", "kinds to compare, with commas between them; all if empty")
)

func newGenerator() Generator { return Generator{Kinds: chosen(), Namespaces: namespaces} }

// chosen returns the kinds that the flags ask for.
func chosen() []*Kind {
	if *kindNames == "" {
		return catalog
	}
	var kinds []*Kind
	for _, kind := range catalog {
		if slices.Contains(strings.Split(*kindNames, ","), kind.Kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Two namespaces of one server do not differ.
func TestRealToReal(t *testing.T) {
	real := newRealServer(t)
	explorer := &Explorer{Generator: newGenerator(), Real: real.run, Ours: real.runAgain, Parallel: *parallel}
	explore(t, *sequences/20, explorer)
}

// Our server does not differ from a real one.
func TestFidelity(t *testing.T) {
	real, ours := newRealServer(t), newOurs(t)
	explore(t, *sequences, &Explorer{
		Generator: newGenerator(), Real: real.run, Ours: ours.run, Known: KnownDifferences(), Parallel: *parallel,
	})
}

// Watches show the same, in all forms, also to those who select objects that come to match and cease to.
func TestWatches(t *testing.T) {
	real, ours := newRealServer(t), newOurs(t)
	watches := []Watch{
		{},
		{Form: Unstructured, Labels: "app=x"},
		{Labels: "app!=x"},
		{Form: Metadata, Labels: "app in (x,z)"},
		{Form: Metadata},
	}
	real.Watches, ours.watches = watches, watches
	// The objects that end a watch can only be created in a namespace that stays.
	generator := Generator{Kinds: chosen()}
	explore(t, *sequences/20, &Explorer{
		Generator: generator, Real: real.run, Ours: ours.run, Known: KnownDifferences(), Parallel: *parallel,
	})
}

func explore(t *testing.T, n int, explorer *Explorer) {
	t.Helper()
	start := time.Now()
	report, err := explorer.Run(t.Context(), *seed, n)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%.0f operations a second", float64(report.Operations)/time.Since(start).Seconds())
	for i, finding := range report.Findings {
		if i < *shrunk {
			if err := explorer.Shrink(t.Context(), finding); err != nil {
				t.Error(err)
			}
		}
	}
	t.Log(report)
	if *out != "" {
		if err := os.WriteFile(*out, []byte(report.String()), 0o600); err != nil {
			t.Error(err)
		}
	}
	if report.Diverging > 0 {
		t.Fail()
	}
}
