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

// timeout limits the time of a sequence on both servers.
const timeout = 2 * time.Minute

var errPatience = fmt.Errorf("a sequence takes longer than %v", timeout)

// An Explorer runs sequences on two servers and searches for divergences.
type Explorer struct {
	Generator Generator

	// Real runs a sequence in a new namespace, Ours in a namespace with the same name. Both are safe for concurrent
	// use.
	Real func(context.Context, Sequence) (*Transcript, error)
	Ours func(context.Context, string, Sequence) (*Transcript, error)

	// Known are differences that are not reported.
	Known *Differences

	// Parallel is the number of sequences that run concurrently. The default is 1.
	Parallel int
}

// A Report is the result of an Explorer.
type Report struct {
	Sequences, Operations, Diverging int
	Findings                         []*Finding // the most frequent first
}

// A Finding is a divergence, with the shortest sequence that shows it.
type Finding struct {
	Signature   string
	Count       int    // of sequences
	Seed        uint64 // of one of them
	Sequence    Sequence
	Divergences []Divergence
	Real, Ours  *Transcript
}

// Run runs n sequences, with consecutive seeds.
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

// attempts is the number of runs of a diverging sequence, in case the clock is the cause.
const attempts = 5

// compare returns the difference of the two servers for a sequence, or nil. Managed fields are ordered by the second of
// their last write, and another order is a new version. Therefore a difference that appears only in a run across a
// second is not a divergence.
func (e *Explorer) compare(ctx context.Context, sequence Sequence) (finding *Finding, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errPatience)
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

// Shrink shortens and simplifies the sequence of a finding as long as it shows the same divergence.
func (e *Explorer) Shrink(ctx context.Context, finding *Finding) error {
	var failed error
	// Operations after the divergence are irrelevant.
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
