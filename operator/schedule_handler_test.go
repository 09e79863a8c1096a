// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/resource"
)

// scheduleHandler fails at random. Its calls are checked.
type scheduleHandler struct {
	world   *scheduleWorld
	process *scheduleProcess
	number  int
	// panicking is the memory of the call that is about to panic.
	panicking *memory
}

var _ Syncer[resource.Object] = (*scheduleHandler)(nil)

func (h *scheduleHandler) Add(ctx context.Context, obj resource.Object) error {
	return h.watched(ctx, ReconcileActionCreated, nil, obj)
}

func (h *scheduleHandler) Update(ctx context.Context, previous, obj resource.Object) error {
	return h.watched(ctx, ReconcileActionUpdated, previous, obj)
}

func (h *scheduleHandler) Delete(ctx context.Context, obj resource.Object) error {
	return h.watched(ctx, ReconcileActionDeleted, nil, obj)
}

func (h *scheduleHandler) Sync(ctx context.Context, obj resource.Object) error {
	return h.watched(ctx, ReconcileActionResynced, nil, obj)
}

func (h *scheduleHandler) watched(ctx context.Context, action ReconcileAction, previous, obj resource.Object) error {
	if known, ok := PreviousFrom[resource.Object](ctx); ok && previous == nil {
		previous = known
	}
	result, err := h.called(ctx, action, previous, obj, nil)
	if err == nil && result.RequeueAfter > 0 {
		return RequeueAfter(result.RequeueAfter)
	}
	return err
}

func (h *scheduleHandler) reconcile(
	ctx context.Context, req TypedReconcileRequest[resource.Object],
) (ReconcileResult, error) {
	previous, _ := PreviousFrom[resource.Object](ctx)
	return h.called(ctx, req.Action, previous, req.Object, req.State)
}

// handlerFailure is an error of a handler. It identifies the handler for the retry policy.
type handlerFailure struct{ memory *memory }

func (e *handlerFailure) Error() string {
	return fmt.Sprintf("failure of handler %d", e.memory.handler)
}

// handlerPanic is the panic of a handler.
type handlerPanic struct{}

func (h *scheduleHandler) retry(err error, attempt int) (bool, time.Duration) {
	if _, unwritten := errors.AsType[FinalizerError](err); unwritten {
		return true, 0
	}
	failure := &handlerFailure{memory: h.panicking}
	if !errors.Is(err, errPanicked) && !errors.As(err, &failure) {
		panic(fmt.Errorf("the retry policy was called with %w", err))
	}
	h.panicking = nil
	retry, after := h.world.policy.policy(err, attempt)
	if failure.memory != nil { // otherwise the process ends
		failure.memory.asked(attempt, retry, after)
	}
	return retry, after
}

func (h *scheduleHandler) called(
	ctx context.Context, action ReconcileAction, previous, object resource.Object, state map[string]any,
) (ReconcileResult, error) {
	w, obj := h.world, object.(subject)
	call := &handlerCall{action: action, object: copyOf(obj), edge: EdgeFrom(ctx), state: state}
	before, updated := previous.(subject)
	if updated {
		call.previous = copyOf(before)
	}
	w.tracef(
		"  handler %d: %s %s, attempt %d, previously %s", h.number, action, call.object, call.edge.Attempt, call.previous,
	)
	w.count(action.String())
	m := h.process.memory(h.number, obj.GetName())
	m.begin(call)
	// Changes of a copy must not be visible elsewhere.
	obj.GetLabels()["label"], *obj.wanted() = "scribbled", -1
	if updated {
		before.GetLabels()["label"], *before.wanted() = "scribbled", -1
	}
	w.interrupt("a call of handler", h.number)
	return h.decide(m, call)
}

// decide chooses the result of a call.
func (h *scheduleHandler) decide(m *memory, call *handlerCall) (ReconcileResult, error) {
	w := m.world
	if !w.chance(w.failing) {
		m.succeeded(call)
		return ReconcileResult{}, nil
	}
	w.serial++
	left := map[string]any{"serial": w.serial}
	failure := &handlerFailure{memory: m}
	switch w.pick(7) {
	default:
		w.tracef("  it fails")
		w.count("failures")
		m.failed(call, left)
		return ReconcileResult{State: left}, failure
	case 4:
		w.tracef("  it asks to be called again after 5s")
		w.count("requests for another call")
		m.repeats(call, left, 5*time.Second)
		return ReconcileResult{State: left, RequeueAfter: 5 * time.Second}, nil
	case 5:
		w.tracef("  it fails with a terminal error")
		w.count("terminal failures")
		m.failed(call, left)
		m.givesUp(call)
		return ReconcileResult{State: left}, reconcile.TerminalError(failure)
	case 6:
		w.tracef("  it panics")
		w.count("panics")
		m.failed(call, call.state)
		h.panicking = m
		panic(handlerPanic{})
	}
}
