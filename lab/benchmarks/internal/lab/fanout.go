// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"time"

	"trueup.dev/lab/benchmarks/internal/report"
)

// Metrics of a change that affects all parents.
var (
	FanoutTime     = report.Metric{Name: "event to last enqueue", Unit: "ms", Drawn: true}
	FanoutEnqueued = report.Metric{Name: "parents enqueued once", Unit: "% of parents"}
	FanoutTotal    = report.Metric{Name: "enqueues per parent"}
	FanoutWrites   = report.Metric{Name: "API writes after the event"}
)

// Fanout changes an object that all parents depend on. It reports the number of enqueues of each parent that result,
// and the time from the call of the timed handler to the last enqueue.
func (t *Trial) Fanout(ctx context.Context, parents int, change func(ctx context.Context) error) error {
	if err := t.settle(ctx, true); err != nil {
		return err
	}
	select {
	case <-t.controller.lastEvent: // of an earlier event
	default:
	}
	queue, writes := t.controller.queue(), t.counter.Counts().Writes()
	queue.record()
	if err := change(ctx); err != nil {
		return err
	}
	var eventTime time.Time
	select {
	case eventTime = <-t.controller.lastEvent:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := t.settle(ctx, true); err != nil {
		return err
	}
	enqueued, last := queue.playback()
	total, once := 0, 0
	for _, times := range enqueued {
		total += times
		if times == 1 {
			once++
		}
	}
	took := float64(last.Sub(eventTime).Nanoseconds()) / 1e6
	t.Note("all enqueued after %.3g ms", took)
	t.Report(FanoutTime, took)
	t.Report(FanoutEnqueued, 100*float64(once)/float64(parents))
	t.Report(FanoutTotal, float64(total)/float64(parents))
	t.Report(FanoutWrites, float64(t.counter.Counts().Writes()-writes))
	return nil
}
