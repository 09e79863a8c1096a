// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"trueup.dev/lab/benchmarks/internal/report"
)

// Metrics of a restart, with everything up to date, and of changes afterwards.
var (
	FirstReconcile   = report.Metric{Name: "restart, to the first reconcile", Unit: "s"}
	LastReconcile    = report.Metric{Name: "restart, to the end of the last reconcile", Unit: "s"}
	RestartWrites    = report.Metric{Name: "restart, API writes"}
	ChangeWall       = report.Metric{Name: "changed parents, to the end of the last reconcile", Unit: "s"}
	ChangeWrites     = report.Metric{Name: "changed parents, API writes for each"}
	ChangeReconciles = report.Metric{Name: "changed parents, reconciles for each"}
	HeapChanged      = report.Metric{Name: "heap after the changes", Unit: "MB"}
)

// Restart stops the controller, and starts it again. All parents are up to date: they are reconciled once, and nothing
// is written. Times start before the manager is set up.
func (t *Trial) Restart(ctx context.Context, plan Plan) error {
	if err := t.controller.stop(); err != nil {
		return err
	}
	t.controller = nil
	t.restedHeap(ctx)
	writes := t.counter.Counts().Writes()
	begin := time.Now()
	done, err := t.start(ctx, plan.SetUp[t.Contender], plan.Parents, plan.Converged)
	if err != nil {
		return err
	}
	if _, err := t.awaitConvergence(ctx, done); err != nil {
		return err
	}
	if err := t.settle(ctx, true); err != nil {
		return err
	}
	queue := t.controller.queue()
	if reconciles := queue.counted().done; reconciles < plan.Parents {
		return fmt.Errorf("%d reconciles after a restart with %d parents", reconciles, plan.Parents)
	}
	t.Report(FirstReconcile, queue.started().Sub(begin).Seconds())
	t.Report(LastReconcile, queue.ended().Sub(begin).Seconds())
	t.Report(RestartWrites, float64(t.counter.Counts().Writes()-writes))
	return nil
}

// Change calls a function that changes a parent for each of the first parents, as fast as the API server permits, and
// reports what the controller does until everything is up to date, which it verifies.
func (t *Trial) Change(ctx context.Context, plan Plan, count int, change func(ctx context.Context, i int) error) error {
	writes, reconciles := t.counter.Counts().Writes(), t.controller.queue().counted().done
	begin := time.Now()
	group, changing := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range count {
		group.Go(func() error { return change(changing, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := t.settle(ctx, true); err != nil {
		return err
	}
	if err := plan.Verify(ctx); err != nil {
		return fmt.Errorf("the controller is idle after changes, but: %w", err)
	}
	queue, n := t.controller.queue(), float64(count)
	t.Report(ChangeWall, queue.ended().Sub(begin).Seconds())
	t.Report(ChangeWrites, float64(t.counter.Counts().Writes()-writes)/n)
	t.Report(ChangeReconciles, float64(queue.counted().done-reconciles)/n)
	t.Report(HeapChanged, max(0, float64(heap())-float64(t.heapBefore))/1e6)
	return nil
}
