// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/observe"
)

// converging holds the objects that were created or whose spec changed, and that have not converged yet.
type converging struct {
	length  atomic.Int64 // the number of objects
	mu      sync.Mutex
	objects map[objectKey]*change
}

// change is a change of a spec.
type change struct {
	at         time.Time
	generation int64
	state      observe.State // the latest known state of the object
	halted     bool          // whether a step of the current reconcile halted
	waits      bool          // whether the current reconcile only waits for the caches or the lease
	waiting    prometheus.Gauge
	duration   prometheus.Observer
}

func (c *converging) started(l *listener, run *observe.Run) {
	for i := range run.Causes {
		cause := &run.Causes[i]
		if cause.Type == observe.CauseObject && (cause.SpecChanged() || c.length.Load() > 0) {
			c.caused(l, run, cause)
		}
	}
	if c.length.Load() > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if known := c.objects[keyOf(run)]; known != nil {
			known.halted, known.waits = false, false
		}
	}
}

// caused handles an event of the reconciled object.
func (c *converging) caused(l *listener, run *observe.Run, cause *observe.Cause) {
	key := keyOf(run)
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.objects[key]
	if known == nil && !cause.SpecChanged() {
		return
	}
	state, ok := cause.State()
	switch {
	case !ok || state.Deleting:
		c.remove(key)
	case cause.SpecChanged() && (known == nil || known.generation != state.Generation):
		c.remove(key)
		c.add(key, &change{
			at: cause.At, generation: state.Generation, state: state,
			waiting:  l.unconverged.WithLabelValues(run.Controller, kindOf(run)),
			duration: l.convergeTime.WithLabelValues(run.Controller, kindOf(run)),
		})
	default:
		known.state = state
	}
}

func kindOf(run *observe.Run) string { return run.Kind.GroupKind().String() }

// add keeps a change. If there are too many, it replaces another one.
func (c *converging) add(key objectKey, added *change) {
	if c.objects == nil {
		c.objects = map[objectKey]*change{}
	}
	for other := range c.objects {
		if len(c.objects) < maxObjects {
			break
		}
		c.remove(other)
	}
	c.objects[key] = added
	added.waiting.Inc()
	c.length.Store(int64(len(c.objects)))
}

func (c *converging) remove(key objectKey) {
	if known := c.objects[key]; known != nil {
		known.waiting.Dec()
		delete(c.objects, key)
		c.length.Store(int64(len(c.objects)))
	}
}

// find calls f with the change of a run, if there is one.
func (c *converging) find(run *observe.Run, f func(key objectKey, known *change)) {
	if run == nil || c.length.Load() == 0 {
		return
	}
	key := keyOf(run)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.objects[key]; known != nil {
		f(key, known)
	}
}

func (c *converging) halted(run *observe.Run) {
	c.find(run, func(_ objectKey, known *change) { known.halted = true })
}

func (c *converging) waits(run *observe.Run) {
	c.find(run, func(_ objectKey, known *change) { known.waits = true })
}

// written handles a write of the reconciled object.
func (c *converging) written(call *observe.Call) {
	if call.Run == nil || call.Object != call.Run.Object || call.Kind.GroupKind() != call.Run.Kind.GroupKind() {
		return
	}
	c.find(call.Run, func(_ objectKey, known *change) {
		if state, ok := call.State(); ok {
			known.state = state
		}
	})
}

func (c *converging) finished(e *observe.ReconcileFinished) {
	if e.Err != nil || e.Panicked {
		return
	}
	c.find(e.Run, func(key objectKey, known *change) {
		switch {
		case known.state.Deleting:
			c.remove(key)
		case known.converged(e):
			known.duration.Observe(max(0, e.Run.Started.Add(e.Duration).Sub(known.at)).Seconds())
			c.remove(key)
		}
	})
}

// converged reports whether a successful reconcile ends with a converged object.
func (c *change) converged(e *observe.ReconcileFinished) bool {
	switch {
	case c.waits:
		return false
	case c.state.ObservedGeneration != 0 && c.state.ObservedGeneration < c.generation:
		return false
	case c.state.Ready != "":
		return c.state.Ready == metav1.ConditionTrue
	}
	return e.Result.IsZero() && !c.halted
}
