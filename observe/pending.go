// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/transient"
)

// maxCauses limits the causes that are kept for one request.
const maxCauses = 16

// early is how much earlier than requested a delayed request may run, because clocks and timers differ.
const early = 20 * time.Millisecond

// pending holds the causes of the requests of one controller that have not been reconciled yet. A queue merges requests
// and does not say why they were added, so the causes are recorded beside it. The zero value is ready to use. It is
// safe for concurrent use.
type pending struct {
	mu       sync.Mutex
	requests transient.Map[reconcile.Request, *waiting]
	// blank is empty. It saves an allocation for requests without a recorded cause.
	blank waiting
}

// waiting holds the causes of one request.
type waiting struct {
	causes  []Cause
	omitted int
	// adding is the number of causes whose request is being added to the queue. If a reconcile starts meanwhile, the
	// queue may start another one for it. That one has the cause raced.
	adding int
	raced  *Cause
	// next is the cause of the requeue or the retry that the last reconcile requested.
	next *Cause
	// failures is the number of consecutive failed reconciles.
	failures int
}

func (w *waiting) isEmpty() bool {
	return len(w.causes) == 0 && w.adding == 0 && w.raced == nil && w.next == nil && w.failures == 0
}

// change calls change with what is recorded of a request.
func (p *pending) change(req reconcile.Request, change func(*waiting)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.requests.Get(req)
	if w == nil {
		w = &p.blank
	}
	change(w)
	switch {
	case w.isEmpty():
		p.requests.Delete(req)
	case w == &p.blank:
		p.requests.Put(req, new(p.blank))
		p.blank = waiting{}
	}
}

// adding records a cause. It must be called before the request is added to the queue, and added afterwards.
func (p *pending) adding(req reconcile.Request, cause Cause) {
	p.change(req, func(w *waiting) {
		w.adding++
		cause.Count = 1
		w.add(cause)
	})
}

func (w *waiting) add(cause Cause) {
	for i := range w.causes {
		if w.causes[i].merge(cause) {
			return
		}
	}
	if len(w.causes) == maxCauses {
		w.omitted++
		return
	}
	w.causes = append(w.causes, cause)
}

func (p *pending) added(req reconcile.Request) { p.change(req, func(w *waiting) { w.adding-- }) }

// take returns the causes of a reconcile that starts, and forgets them.
func (p *pending) take(req reconcile.Request, now time.Time) (causes []Cause, omitted int) {
	p.change(req, func(w *waiting) {
		causes, omitted = w.causes, w.omitted
		if next := w.next; next != nil && !now.Add(early).Before(next.At.Add(next.After)) {
			w.add(*next)
			causes = w.causes
		}
		if len(causes) == 0 && w.raced != nil {
			causes = []Cause{*w.raced}
		}
		w.raced = nil
		if w.adding > 0 && len(w.causes) > 0 {
			w.raced = &w.causes[len(w.causes)-1]
		}
		w.causes, w.omitted, w.next = nil, 0, nil
	})
	if len(causes) == 0 {
		causes = []Cause{{Type: CauseUnknown, At: now, Count: 1}}
	}
	return causes, omitted
}

// forget drops what is recorded of a request, if anything is.
func (p *pending) forget(req reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests.Delete(req)
}

// ended records the result of a reconcile. next is the cause of the next one, or nil. If the reconcile only waited, its
// causes are also causes of the next one.
func (p *pending) ended(req reconcile.Request, run *Run, failed bool, next *Cause) {
	p.change(req, func(w *waiting) {
		if next != nil && (next.Type == CauseStaleRead || next.Type == CauseLoopDelay) {
			later := w.causes
			w.causes, w.omitted = slices.Clone(run.Causes), w.omitted+run.OmittedCauses
			for _, cause := range later {
				w.add(cause)
			}
		}
		if w.failures++; !failed {
			w.failures = 0
		}
		if w.next = next; next != nil && next.Type == CauseRetry {
			next.Attempt = w.failures
		}
	})
}

// merge adds an equal cause, and reports whether it was equal. An update keeps the first state of its object. Therefore
// its changes are the changes of all merged updates.
func (c *Cause) merge(other Cause) bool {
	if c.Type != other.Type || c.Kind != other.Kind || c.Object != other.Object || c.Verb != other.Verb {
		return false
	}
	c.Count += other.Count
	c.At, c.After, c.Attempt, c.Err = other.At, other.After, other.Attempt, other.Err
	if c.before != nil && other.after != nil {
		c.after = other.after
	}
	return true
}
