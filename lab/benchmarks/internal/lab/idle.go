// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/report"
)

// Metrics of reconciles that have nothing to do. "One at a time" is the cost of the reconciler alone, called by one
// goroutine; a storm measures the whole controller, with its queue and all its workers. CPU is the time of the process,
// including garbage collection.
var (
	alone = usageMetrics{
		time:   report.Metric{Name: "no-op reconcile, one at a time", Unit: "µs"},
		cpu:    report.Metric{Name: "no-op reconcile, CPU", Unit: "µs", Drawn: true},
		bytes:  report.Metric{Name: "no-op reconcile, memory", Unit: "bytes", Drawn: true},
		allocs: report.Metric{Name: "no-op reconcile, allocations"},
	}
	storm = usageMetrics{
		time:   report.Metric{Name: "resync storm, per reconcile", Unit: "µs", Drawn: true},
		cpu:    report.Metric{Name: "resync storm, CPU per reconcile", Unit: "µs"},
		bytes:  report.Metric{Name: "resync storm, memory per reconcile", Unit: "bytes"},
		allocs: report.Metric{Name: "resync storm, allocations per reconcile"},
	}
	// StormWrites must be 0.
	StormWrites = report.Metric{Name: "resync storm, API writes"}
	// Heap is the memory of the controller, with its caches.
	Heap     = report.Metric{Name: "heap after", Unit: "MB", Drawn: true}
	Resident = report.Metric{Name: "resident memory after", Unit: "MB"}
)

const (
	// minPasses is the minimum number of times that everything is enqueued.
	minPasses = 3
	// batches is the number of repetitions of the one-at-a-time measurement. The best one counts.
	batches = 5
)

// Idle reports the cost of no-op reconciles, and the memory in use. It starts after all events have been sent.
func (t *Trial) Idle(ctx context.Context) error {
	if err := t.settle(ctx, true); err != nil {
		return err
	}
	t.tally(t.counter.Counts())
	t.Report(Heap, max(0, float64(heap())-float64(t.heapBefore))/1e6)
	if used := resident(); used > 0 {
		t.Report(Resident, max(0, float64(used)-float64(t.residentBefore))/1e6)
	}
	parents, err := t.parents(ctx)
	if err != nil {
		return err
	}
	called, stop, err := t.calledByController(ctx)
	if err != nil {
		return err
	}
	defer stop()
	passes := t.options.Visits / t.Size
	if err := t.oneAtATime(called, parents, max(1, passes)); err != nil {
		return err
	}
	if err := t.resync(ctx, parents, max(minPasses, passes)); err != nil {
		return err
	}
	if t.profiled() {
		return t.options.Profile.record(func() error { return t.reconcileAll(called, parents) })
	}
	return nil
}

func (t *Trial) parents(ctx context.Context) ([]types.NamespacedName, error) {
	list := &api.WidgetList{}
	if err := t.Live.List(ctx, list, client.InNamespace(Namespace)); err != nil {
		return nil, err
	}
	keys := make([]types.NamespacedName, len(list.Items))
	for i := range list.Items {
		keys[i] = client.ObjectKeyFromObject(&list.Items[i])
	}
	return keys, nil
}

// oneAtATime calls the reconciler directly, in this goroutine.
func (t *Trial) oneAtATime(ctx context.Context, parents []types.NamespacedName, passes int) error {
	best := usage{}
	for batch := range batches {
		used, err := measure(passes*len(parents), func() error {
			for range passes {
				if err := t.reconcileAll(ctx, parents); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if batch == 0 {
			best = used
		}
		best = least(best, used)
	}
	t.reportUsage(alone, best)
	t.Note("no-op reconcile in %s", time.Duration(best.microseconds*1000).Round(100*time.Nanosecond))
	return nil
}

func (t *Trial) reconcileAll(ctx context.Context, parents []types.NamespacedName) error {
	for _, parent := range parents {
		if err := ctx.Err(); err != nil {
			return err
		}
		result, err := t.controller.reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: parent})
		if err == nil && !result.IsZero() {
			err = fmt.Errorf("unexpected result: %+v", result)
		}
		if err != nil {
			return fmt.Errorf("no-op reconcile of %s: %w", parent, err)
		}
	}
	return nil
}

// resync enqueues all parents at once, as a resync does, and again after all are done.
func (t *Trial) resync(ctx context.Context, parents []types.NamespacedName, passes int) error {
	events := make([]event.GenericEvent, len(parents))
	for i, parent := range parents {
		events[i].Object = &api.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name}}
	}
	writes := t.counter.Counts().Writes()
	used, err := measure(passes*len(parents), func() error {
		for range passes {
			done := t.controller.queue().after(len(events))
			for _, e := range events {
				select {
				case t.controller.resync <- e:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			select {
			case <-done:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.reportUsage(storm, used)
	t.Report(StormWrites, float64(t.counter.Counts().Writes()-writes))
	return nil
}
