// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"trueup.dev/observe"
	"trueup.dev/tracker"
)

// waits records what a request waits for, based on the references that its steps have tracked. Steps that succeed wait
// for nothing. Methods do nothing on a nil receiver.
type waits struct {
	// partial reports whether the request does not renew all references of the resource.
	partial atomic.Bool
	// leftOut reports whether a reconciler did not compute its conditions.
	leftOut atomic.Bool

	mu sync.Mutex
	waiting
}

// waiting is the state of waits.
type waiting struct {
	// tracked counts references, and missing counts references to objects that do not exist. The unobserved counters
	// count the references among them whose changes may not enqueue a request.
	tracked, missing                     int
	unobservedTracked, unobservedMissing int
	// other reports whether a step halted that does not wait for its tracked objects.
	other bool
	// latest is nil if no step has tracked or halted. It is replaced and not changed, because waiting is copied.
	latest *latest
}

// latest describes what a request waits for, for logs.
type latest struct {
	// tracked is the last tracked reference to a missing object. If no object is missing, it is the last tracked
	// reference.
	tracked tracker.Reference
	// log is the logger of the last step that tracked or halted.
	log logr.Logger
}

// last returns a copy of what was tracked last.
func (w *waiting) last() latest {
	if w.latest == nil {
		return latest{}
	}
	return *w.latest
}

// waitsFrom returns the waits of the request of a context, or nil outside of requests of root reconcilers.
func waitsFrom(ctx context.Context) *waits { return requestFrom(ctx).waitsOf() }

// waitsOf returns the waits of a request that may be nil.
func (r *request) waitsOf() *waits {
	if r == nil {
		return nil
	}
	return &r.waits
}

// track records a reference, and whether the object is missing.
func (w *waits) track(ctx context.Context, ref tracker.Reference, by delivered, missing bool) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.last()
	last.log = logr.FromContextOrDiscard(ctx)
	w.tracked++
	if !by.all && !(missing && by.creations) {
		w.unobservedTracked++
	}
	if missing || w.missing == 0 {
		last.tracked = ref
	}
	w.latest = &last
	if !missing {
		return
	}
	w.missing++
	if !by.creations {
		w.unobservedMissing++
	}
}

// holdsReferences reports whether the references of the request last while the resource is idle.
func (r *request) holdsReferences() bool { return r != nil && r.byController }

// keepReferences records that a reconciler did not run although its references are still needed.
func (w *waits) keepReferences() {
	if w != nil {
		w.partial.Store(true)
	}
}

// unfinished notes that a reconciler left out something that is still needed, or could not finish: its references are
// kept, Prune deletes nothing, enclosing finalizers are kept, and the enclosing step of [Steps] is not ready. why says
// what the step waits for. If it is empty, the step is as ready as in the last request.
func unfinished(ctx context.Context, why string) {
	s := scopeFrom(ctx)
	s.of.waitsOf().keepReferences()
	s.inventory.keep()
	if s.held != nil {
		s.held.Store(true)
	}
	if why != "" {
		s.of.waitsOf().leaveOut()
		s.stepRun.wait(why, false)
	}
}

// leaveOut records that a reconciler did not compute its conditions, although it is part of the request.
func (w *waits) leaveOut() {
	if w != nil {
		w.leftOut.Store(true)
	}
}

// halted records the logger of the step that halted.
func (w *waits) halted(ctx context.Context) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.last()
	last.log = logr.FromContextOrDiscard(ctx)
	w.latest = &last
}

// begin returns the state before a step. Pass it to end.
func (w *waits) begin() waiting {
	if w == nil {
		return waiting{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting
}

// end is called after a step. A step that succeeded waits for nothing.
func (w *waits) end(before waiting, err error) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.waiting = before
	} else if !w.explains(before, err) {
		w.other = true
	}
}

// explain is explains, for a step that started at before.
func (w *waits) explain(before waiting, err error) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.explains(before, err)
}

// explains reports whether a halted step waits only for objects that it tracked since before. A step that halts after a
// tracked object was missing waits for that object. If no object was missing, the step may wait for another effect:
// then only a durable error confirms that the step waits for tracked objects.
func (w *waiting) explains(before waiting, err error) bool {
	if errors.Is(err, ErrDurable) {
		return w.tracked > before.tracked && w.unobservedTracked == before.unobservedTracked
	}
	return w.missing > before.missing && w.unobservedMissing == before.unobservedMissing
}

// perRequest keeps values of a few requests of a root reconciler, of those that failed for example. The zero value is
// ready to use. It is safe for concurrent use.
type perRequest[V any] struct {
	// kept is the number of values. It allows a check without locking.
	kept atomic.Int64

	mu     sync.Mutex
	values map[Request]V
}

// reset removes the value of a request.
func (p *perRequest[V]) reset(req Request) {
	if p.kept.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.values, req)
	p.kept.Store(int64(len(p.values)))
}

// change calls change with the value of a request, which is the zero value at first.
func (p *perRequest[V]) change(req Request, change func(value *V)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.values == nil {
		p.values = map[Request]V{}
	}
	value := p.values[req]
	change(&value)
	p.values[req] = value
	p.kept.Store(int64(len(p.values)))
}

// halts counts the consecutive halts of requests.
type halts struct{ perRequest[halt] }

// halt counts the consecutive halts of one request.
type halt struct {
	retries int
	waits   bool
}

// logAfterRetries is the number of consecutive retries after which a message is logged. Most conditions are met
// earlier.
const logAfterRetries = 5

// count records that a request has halted, and reports whether to log this.
func (h *halts) count(req Request, waits bool) (log bool) {
	h.change(req, func(this *halt) {
		if waits {
			log = !this.waits
			*this = halt{waits: true}
			return
		}
		this.waits = false
		this.retries++
		log = this.retries == logAfterRetries
	})
	return log
}

// halted returns the result of a request of a controller that ended with a quiet error without a RequeueAfter.
//
// A request that waits only for tracked objects is retried when one of them changes, and once in a sync period.
func (r *request) halted(ctx context.Context, root root, result Result, err error) Result {
	halts := &r.requests.halts
	retry := withPriority(backOff, result)
	if !errors.Is(err, ErrHaltSubReconcilers) {
		halts.reset(r.scope.request)
		return retry
	}
	r.waits.end(waiting{}, err)
	waits := r.waits.begin()
	last := waits.last()
	log := last.log
	if log.GetSink() == nil {
		log = logr.FromContextOrDiscard(ctx)
	}
	requeue := result.Requeue //nolint:staticcheck // reconcilers may still set it
	if !waits.other && !requeue && root.config.syncPeriod > 0 {
		root.reportDeferred(ctx, observe.DeferHaltWait)
		if halts.count(r.scope.request, true) {
			log.Info("halted until a tracked object changes", "tracked", describe(last.tracked))
		}
		resync := Result{RequeueAfter: root.config.syncPeriod}
		next := r.retryReflected(r.retryStale(root.config, withPriority(resync, result)))
		if next.Priority == nil && next.RequeueAfter == resync.RequeueAfter {
			// The queue keeps the highest priority of a request: a resync meanwhile would not have a low one.
			next.Priority = new(handler.LowPriority)
		}
		return next
	}
	root.reportDeferred(ctx, observe.DeferHaltRetry)
	if halts.count(r.scope.request, false) {
		log.Info("halted several times in a row, retrying with back-off", "retries", logAfterRetries, "to avoid this",
			"track the missing object and watch its kind with EnqueueTracked, "+
				"return ErrDurable if only a change of tracked objects helps, or return a RequeueAfter")
	}
	return retry
}

// describe returns a description of a reference for logs.
func describe(ref tracker.Reference) string {
	text := ref.Kind
	if ref.APIGroup != "" {
		text += "." + ref.APIGroup
	}
	switch {
	case ref.Selector != nil:
		text += " with labels " + ref.Selector.String()
		if ref.Namespace != "" {
			text += " in " + ref.Namespace
		}
	case ref.Namespace != "":
		text += " " + ref.Namespace + "/" + ref.Name
	default:
		text += " " + ref.Name
	}
	return text
}
