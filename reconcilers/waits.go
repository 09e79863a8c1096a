// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"trueup.dev/tracker"
)

var (
	haltedRetries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_halted_retries_total",
		Help: "Requests that halted without a time to come back, and are retried with back-off.",
	}, []string{"reconciler"})

	haltedWaits = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_halted_waits_total",
		Help: "Requests that halted on tracked objects, and come back when one of those changes.",
	}, []string{"reconciler"})
)

func init() {
	metrics.Registry.MustRegister(haltedRetries, haltedWaits)
}

// waits is what a request waits for, as far as can be told from what its steps have tracked. Steps that succeed wait
// for nothing. A nil waits notes nothing.
type waits struct {
	mu sync.Mutex
	waiting
}

// waiting is the state of waits.
type waiting struct {
	// tracked are references, and missing those to objects that do not exist. Of both, loose are those that may change
	// without a request being made.
	tracked, missing           int
	looseTracked, looseMissing int
	// other is true when a step halted that does not wait for what it tracked.
	other bool
	// last is the last reference that was tracked to an object that does not exist, or else to any.
	last tracker.Reference
	// log is the logger of the step that tracked or halted last.
	log logr.Logger
}

func waitsFrom(ctx context.Context) *waits {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		return s.waits
	}
	return nil
}

// track notes a reference, and whether the object was missing.
func (w *waits) track(ctx context.Context, ref tracker.Reference, by passes, missing bool) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = logr.FromContextOrDiscard(ctx)
	w.tracked++
	if !by.all && !(missing && by.creations) {
		w.looseTracked++
	}
	if missing || w.missing == 0 {
		w.last = ref
	}
	if !missing {
		return
	}
	w.missing++
	if !by.creations {
		w.looseMissing++
	}
}

// halted notes where a request has halted.
func (w *waits) halted(ctx context.Context) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = logr.FromContextOrDiscard(ctx)
}

// begin is called before each of several steps, and its result handed to end.
func (w *waits) begin() waiting {
	if w == nil {
		return waiting{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting
}

// end is called after a step. One that has succeeded waits for nothing.
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

// explains reports whether what was tracked since before is all that a halted step waits for. A step that halts after
// it found a tracked object missing waits for that object. One that found all it tracked may wait for what it did with
// them: only a durable error says that nothing but a change helps.
func (w *waiting) explains(before waiting, err error) bool {
	if errors.Is(err, ErrDurable) {
		return w.tracked > before.tracked && w.looseTracked == before.looseTracked
	}
	return w.missing > before.missing && w.looseMissing == before.looseMissing
}

// halts are the requests of a root reconciler that have halted the last time. The zero value is ready to use.
type halts struct {
	// halted is the number of requests, so that a look is cheap when there are none.
	halted atomic.Int64

	mu       sync.Mutex
	requests map[Request]*halt
}

// halt is one request that has halted several times in a row.
type halt struct {
	retries int
	waits   bool
}

// sayAfter is the number of retries in a row after which a message is logged. Most of what is waited for comes sooner.
const sayAfter = 5

// over forgets a request that has not halted.
func (h *halts) over(req Request) {
	if h.halted.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.requests, req)
	h.halted.Store(int64(len(h.requests)))
}

// count notes that a request has halted, and reports whether that is to be logged.
func (h *halts) count(req Request, waits bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.requests == nil {
		h.requests = map[Request]*halt{}
	}
	this := h.requests[req]
	if this == nil {
		this = &halt{}
		h.requests[req] = this
		h.halted.Store(int64(len(h.requests)))
	}
	if waits {
		said := this.waits
		*this = halt{waits: true}
		return !said
	}
	this.waits = false
	this.retries++
	return this.retries == sayAfter
}

// halted returns the result of a request that was made by a controller, and has ended with a quiet error that tells no
// time to come back.
//
// One that waits for tracked objects only comes back when one of them changes. Its references must not lapse until
// then: they hold for two sync periods, and it renews them after one, unless something else does.
func (r *request) halted(ctx context.Context, root root, result Result, err error) Result {
	halts := &r.requests.halts
	retry := withPriority(backOff, result)
	if !errors.Is(err, ErrHaltSubReconcilers) {
		halts.over(r.scope.request)
		return retry
	}
	r.waits.end(waiting{}, err)
	waits := r.waits.begin()
	log := waits.log
	if log.GetSink() == nil {
		log = logr.FromContextOrDiscard(ctx)
	}
	asked := result.Requeue //nolint:staticcheck // reconcilers may still ask for it
	if !waits.other && !asked && root.config.syncPeriod > 0 {
		haltedWaits.WithLabelValues(root.name).Inc()
		if halts.count(r.scope.request, true) {
			log.Info("halted until a tracked object changes", "tracked", describe(waits.last))
		}
		result = r.retryStale(root.config, withPriority(Result{RequeueAfter: root.config.syncPeriod}, result))
		return r.retryReflected(result)
	}
	haltedRetries.WithLabelValues(root.name).Inc()
	if halts.count(r.scope.request, false) {
		log.Info("halted several times in a row, retrying with back-off", "retries", sayAfter, "to avoid this",
			"track what is missing and watch its kind with EnqueueTracked, "+
				"return ErrDurable if only a change of tracked objects helps, or return a RequeueAfter")
	}
	return retry
}

// describe is a reference for a log line.
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
