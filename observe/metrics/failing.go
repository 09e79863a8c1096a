// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
)

// objectKey identifies a reconciled object.
type objectKey struct {
	controller, cluster string
	object              types.NamespacedName
}

func keyOf(run *observe.Run) objectKey { return objectKey{run.Controller, run.Cluster(), run.Object} }

// failing holds the objects whose last reconcile failed, and the failed steps.
type failing struct {
	length  atomic.Int64 // the number of objects
	mu      sync.Mutex
	objects map[objectKey]*failure
	// panics holds the innermost step that panicked, of runs that have not finished. noted is their number.
	panics map[*observe.Run]*step
	noted  atomic.Int64
}

// failure is a failed reconcile.
type failure struct {
	steps []*step
	// waits reports whether the current reconcile only waits for the caches or the lease.
	waits bool
}

// stepPanicked must be called for the innermost step first.
func (f *failing) stepPanicked(run *observe.Run, s *step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics == nil {
		f.panics = map[*observe.Run]*step{}
	}
	f.panics[run] = cmp.Or(f.panics[run], s)
	f.noted.Store(int64(len(f.panics)))
}

// takePanic returns the innermost step of a finished run that panicked, or nil, and forgets it.
func (f *failing) takePanic(run *observe.Run) *step {
	if f.noted.Load() == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.panics[run]
	delete(f.panics, run)
	f.noted.Store(int64(len(f.panics)))
	return s
}

func (f *failing) waits(run *observe.Run) {
	if run == nil || f.length.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.objects[keyOf(run)]; known != nil {
		known.waits = true
	}
}

func (f *failing) finished(l *listener, e *observe.ReconcileFinished) {
	panicked := f.takePanic(e.Run)
	failed := e.Failed()
	if !failed && f.length.Load() == 0 {
		return
	}
	var steps []*step
	switch {
	case e.Panicked && panicked != nil:
		steps = []*step{panicked}
	case e.Err != nil || e.Panicked:
		steps = failedSteps(l.of(e.Run), e.Failures)
	case failed:
		steps = failedSteps(l.of(e.Run), e.Refused)
	}
	key := keyOf(e.Run)
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.objects[key]; known != nil {
		if known.waits && !failed {
			known.waits = false
			return
		}
		for _, s := range known.steps {
			s.failing.Dec()
		}
		delete(f.objects, key)
	}
	if failed && len(f.objects) < maxObjects {
		if f.objects == nil {
			f.objects = map[objectKey]*failure{}
		}
		f.objects[key] = &failure{steps: steps}
		for _, s := range steps {
			s.failing.Inc()
		}
	}
	f.length.Store(int64(len(f.objects)))
}

// failedSteps returns the failed steps, each once. Without a known step it returns the root of the controller.
func failedSteps(c *controller, failures []observe.Failure) []*step {
	var steps []*step
	for _, failure := range failures {
		if s := c.innermost(failure.Step); !slices.Contains(steps, s) {
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 {
		steps = append(steps, c.root)
	}
	return steps
}
