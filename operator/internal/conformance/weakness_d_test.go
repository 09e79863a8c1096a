// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
)

func TestWeaknessD2_PanicIsRecoveredAndRetried(t *testing.T) {
	inLab(t, func(l *lab) {
		panics := atomic.Int32{}
		n := &notebook[*fixture.Resource]{answer: func(line string, _ *fixture.Resource) error {
			if panics.Add(1) <= 2 {
				panic(line)
			}
			return nil
		}}
		l.start(controller(opinionated(n, every(time.Second))))
		l.must(l.Create(l.Context(), newResource("a", "1")))
		l.must(l.Create(l.Context(), newResource("b", "1")))
		l.pass(time.Hour)
		calls := map[string]int{}
		for _, line := range n.take() {
			calls[line]++
		}
		if calls["Add a 1"]+calls["Add b 1"] != 4 || len(calls) != 2 {
			t.Errorf("calls: %v, want two for the objects and one more for each panic", calls)
		}
	})
}

func TestWeaknessD13_ErrorIsNotSwallowedByRequeueAfter(t *testing.T) {
	inLab(t, func(l *lab) {
		begin, at, calls := time.Now(), &notes{}, atomic.Int32{}
		reconciler := &operator.TypedReconciler[*fixture.Resource]{
			ReconcileFunc: func(
				context.Context, operator.TypedReconcileRequest[*fixture.Resource],
			) (operator.ReconcileResult, error) {
				at.add(time.Since(begin).Truncate(time.Second))
				if calls.Add(1) < 3 {
					return operator.ReconcileResult{RequeueAfter: time.Hour}, errTest
				}
				return operator.ReconcileResult{}, nil
			},
		}
		handler := operator.AsSubReconciler[*fixture.Resource](reconciler)
		handler.Name, handler.RetryPolicy = "d13", operator.ExponentialBackoffRetryPolicy(10*time.Second, 5)
		failures := func() float64 {
			return apitest.Counted(t, "trueup_handler_calls_total", map[string]string{"handler": "d13", "result": "failed"})
		}
		before := failures()
		l.start(controller[*fixture.Resource](handler))
		l.must(l.Create(l.Context(), newResource("a", "1")))
		l.pass(24 * time.Hour)
		at.wantLines(t, "5s", "1h0m5s", "2h0m5s") // RequeueAfter sets the delay, and the failure is still reported
		if failed := failures() - before; failed != 2 {
			t.Errorf("%v failures were counted, want 2", failed)
		}
		if events := l.eventsOf("HandlerFailed"); events != 2 {
			t.Errorf("events: %v", l.events)
		}
	})
}
