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
	sequences = flag.Int("fidelity.sequences", 400, "number of sequences")
	seed      = flag.Uint64("fidelity.seed", 1, "seed of the first sequence")
	parallel  = flag.Int("fidelity.parallel", 8, "number of concurrent sequences")
	shrunk    = flag.Int("fidelity.shrink", 10, "number of divergences to shrink")
	out       = flag.String("fidelity.out", "", "additional output file of the report")
	kindNames = flag.String("fidelity.kinds", "", "comma-separated kinds to compare; empty for all")
)

func newGenerator() Generator { return Generator{Kinds: chosen(), Namespaces: namespaces} }

// chosen returns the kinds in the flags.
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

// Two namespaces of one server have no differences.
func TestRealToReal(t *testing.T) {
	real := newRealServer(t)
	explorer := &Explorer{Generator: newGenerator(), Real: real.run, Ours: real.runAgain, Parallel: *parallel}
	explore(t, *sequences/20, explorer)
}

// Our server has no unknown differences to a real one.
func TestFidelity(t *testing.T) {
	real, ours := newRealServer(t), newOurs(t)
	explore(t, *sequences, &Explorer{
		Generator: newGenerator(), Real: real.run, Ours: ours.run, Known: KnownDifferences(), Parallel: *parallel,
	})
}

// Watches show the same events in all forms, also with selectors for objects that start and stop to match.
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
	// The objects that end a watch can only be created in a namespace that is not deleted.
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
