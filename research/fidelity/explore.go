// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// patience is how long a sequence may take on both servers.
const patience = 2 * time.Minute

var errPatience = fmt.Errorf("a sequence takes longer than %v", patience)

// An Explorer runs sequences on two servers and looks for divergences.
type Explorer struct {
	Generator Generator

	// Real runs a sequence in a namespace of its own, Ours in one of that name. Both are safe for concurrent use.
	Real func(context.Context, Sequence) (*Transcript, error)
	Ours func(context.Context, string, Sequence) (*Transcript, error)

	// Known are differences that are no findings.
	Known *Differences

	// Parallel is how many sequences run at a time, default 1.
	Parallel int
}

// A Report is what an Explorer found.
type Report struct {
	Sequences, Operations, Diverging int
	Findings                         []*Finding // the most frequent first
}

// A Finding is a divergence that was found, with the sequence made as short as it can be.
type Finding struct {
	Signature   string
	Count       int    // of sequences
	Seed        uint64 // of one of them
	Sequence    Sequence
	Divergences []Divergence
	Real, Ours  *Transcript
}

// Run runs n sequences, of a seed and those after it.
func (e *Explorer) Run(ctx context.Context, seed uint64, n int) (*Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		mu       sync.Mutex
		report   = &Report{}
		findings = map[string]*Finding{}
		group    sync.WaitGroup
		seeds    = make(chan uint64)
	)
	for range max(1, e.Parallel) {
		group.Go(func() {
			for seed := range seeds {
				finding, err := e.compare(ctx, e.Generator.Sequence(seed))
				if err != nil {
					cancel(fmt.Errorf("seed %d: %w", seed, err))
					continue
				}
				mu.Lock()
				report.Sequences++
				report.Operations += Length
				if finding != nil {
					report.Diverging++
					finding.Seed = seed
					if findings[finding.Signature] == nil {
						findings[finding.Signature] = finding
					}
					findings[finding.Signature].Count++
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		select {
		case seeds <- seed + uint64(i):
		case <-ctx.Done():
		}
	}
	close(seeds)
	group.Wait()
	for _, finding := range findings {
		report.Findings = append(report.Findings, finding)
	}
	slices.SortFunc(report.Findings, func(a, b *Finding) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Signature, b.Signature))
	})
	return report, context.Cause(ctx)
}

// attempts is how often a sequence is run that diverges, if the clock may be the reason.
const attempts = 5

// compare returns how the two servers differ with a sequence, nil if they do not. Managed fields are ordered by the
// second in which they were last written, and another order is a new version. So what only differs in a run from one
// second into another is no divergence.
func (e *Explorer) compare(ctx context.Context, sequence Sequence) (finding *Finding, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	for range attempts {
		finding, err = e.compareOnce(ctx, sequence)
		if err != nil || finding == nil || finding.Real.Start.Unix() == finding.Real.End.Unix() {
			break
		}
	}
	return finding, err
}

func (e *Explorer) compareOnce(ctx context.Context, sequence Sequence) (*Finding, error) {
	real, err := e.Real(ctx, sequence)
	if err != nil {
		return nil, fmt.Errorf("the real server: %w", err)
	}
	ours, err := e.Ours(ctx, real.Namespace, sequence)
	if err != nil {
		return nil, fmt.Errorf("our server: %w", err)
	}
	divergences := Compare(real, ours, e.Known)
	if len(divergences) == 0 {
		return nil, nil
	}
	return &Finding{
		Signature: divergences[0].Signature(), Sequence: sequence, Divergences: divergences, Real: real, Ours: ours,
	}, nil
}

// Shrink makes the sequence of a finding as short and simple as it can be with the same divergence.
func (e *Explorer) Shrink(ctx context.Context, finding *Finding) error {
	var failed error
	// What comes after the divergence has no part in it.
	sequence := finding.Sequence[:min(len(finding.Sequence), finding.Divergences[0].Step+1)]
	shrink(sequence, func(shorter Sequence) bool {
		if failed != nil {
			return false
		}
		smaller, err := e.compare(ctx, shorter)
		if err != nil {
			failed = err
			return false
		}
		if smaller == nil || smaller.Signature != finding.Signature {
			return false
		}
		smaller.Count, smaller.Seed = finding.Count, finding.Seed
		*finding = *smaller
		return true
	})
	return failed
}
