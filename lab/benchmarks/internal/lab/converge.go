// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/report"
	"trueup.dev/lab/benchmarks/internal/traffic"
)

// Plan is a workload whose parents converge.
type Plan struct {
	// Parents is the number of widgets.
	Parents int
	// SetUp has the controller of each contender.
	SetUp map[string]SetUp
	// Converged reports whether a widget, as read from the cache of the controller, is up to date.
	Converged func(w *api.Widget) bool
	// Verify returns an error unless everything is up to date on the API server.
	Verify func(ctx context.Context) error
}

// Metrics of every workload that converges.
var (
	Wall       = report.Metric{Name: "wall to converge", Unit: "s", Drawn: true}
	Reconciles = report.Metric{Name: "reconciles to converge"}
	Conflicts  = report.Metric{Name: "conflicts", Unit: "% of writes"}
)

// Refused is the suffix of the tally of requests that were answered with a conflict.
const Refused = ", refused"

// Writes returns the name of the metric for the number of writes for each noun.
func Writes(noun string) report.Metric {
	return report.Metric{Name: "API writes per " + strings.TrimSuffix(strings.TrimSuffix(noun, "s"), "ren"), Drawn: true}
}

// Converge starts the controller, and reports the cost until everything is up to date, which it verifies, and no
// activity remains. Events may still be in flight.
func (t *Trial) Converge(ctx context.Context, plan Plan, writes report.Metric) error {
	t.heapBefore, t.residentBefore = t.restedHeap(ctx), resident()
	done, err := t.start(ctx, plan.SetUp[t.Contender], plan.Parents, plan.Converged)
	if err != nil {
		return err
	}
	converged, err := t.awaitConvergence(ctx, done)
	if err != nil {
		return err
	}
	if err := t.settle(ctx, false); err != nil {
		return err
	}
	if err := plan.Verify(ctx); err != nil {
		return fmt.Errorf("the controller has converged, but: %w", err)
	}

	counts := t.counter.Counts()
	wall := converged.Sub(t.controller.queue().started())
	t.Note("converged in %.3g s", wall.Seconds())
	t.Report(Wall, wall.Seconds())
	t.Report(writes, float64(counts.Writes())/float64(t.Size))
	t.Report(Reconciles, float64(t.controller.queue().counted().done))
	t.Report(Conflicts, 100*float64(counts.Conflicts())/float64(max(1, counts.Writes())))
	t.tally(counts)
	return nil
}

func (t *Trial) awaitConvergence(ctx context.Context, done <-chan time.Time) (time.Time, error) {
	select {
	case converged := <-done:
		return converged, nil
	case <-t.controller.ended.Done():
		return time.Time{}, errors.Join(t.controller.failure(), context.Cause(ctx))
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

// tally reports the requests by verb and kind, those for events last.
func (t *Trial) tally(counts traffic.Counts) {
	requests := slices.SortedFunc(maps.Keys(counts.Requests), func(a, b traffic.Request) int {
		return strings.Compare(rank(a)+a.String(), rank(b)+b.String())
	})
	for _, request := range requests {
		t.Report(report.Metric{Name: request.String(), Tally: true}, float64(counts.Requests[request]))
		if refused := counts.Refused[request]; refused > 0 {
			t.Report(report.Metric{Name: request.String() + Refused, Tally: true}, float64(refused))
		}
	}
}

func rank(r traffic.Request) string {
	switch {
	case r.IsEvent():
		return "3"
	case r.IsWrite():
		return "1"
	default:
		return "2"
	}
}

// settlePoll is the poll interval of settle.
const settlePoll = 20 * time.Millisecond

// settle returns when the controller has been idle for Quiet: an empty queue, no reconcile and no request in flight,
// and none since.
func (t *Trial) settle(ctx context.Context, events bool) error {
	type state struct {
		queueCount
		traffic.Activity
	}
	ticker := time.NewTicker(settlePoll)
	defer ticker.Stop()
	last, since := state{}, time.Now()
	for {
		now, waiting := state{Activity: t.counter.Activity(events)}, 1 // until the controller has a queue
		if queue := t.controller.queue(); queue != nil {
			now.queueCount, waiting = queue.counted(), queue.Len()
		}
		if now != last || now.taken != now.done || now.Open > 0 || waiting > 0 {
			last, since = now, time.Now()
		}
		if time.Since(since) >= t.options.Quiet {
			return nil
		}
		select {
		case <-ticker.C:
		case <-t.controller.ended.Done():
			return t.controller.failure()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
