// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
)

// objectKey identifies a reconciled object.
type objectKey struct {
	controller string
	object     types.NamespacedName
}

func keyOf(run *observe.Run) objectKey { return objectKey{run.Controller, run.Object} }

// failing holds the objects whose last reconcile failed, and the failed steps.
type failing struct {
	length  atomic.Int64 // the number of objects
	mu      sync.Mutex
	objects map[objectKey]*failure
	// troubles holds what has happened in runs that have not finished. noted is their number.
	troubles map[*observe.Run]*trouble
	noted    atomic.Int64
}

// trouble is what makes a run a failure, apart from its error.
type trouble struct {
	// panicked is the innermost step that panicked, or nil.
	panicked *step
	// refused is the path of the step of the last refused write, or nil, and object is the object of that write.
	refused []string
	object  objectRef
}

// objectRef identifies an object of a write.
type objectRef struct {
	kind   schema.GroupKind
	object types.NamespacedName
}

// failure is a failed reconcile.
type failure struct {
	steps []*step
	// waits reports whether the current reconcile only waits for the caches.
	waits bool
}

// note changes what is known of a run.
func (f *failing) note(run *observe.Run, change func(*trouble)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.troubles[run]
	if t == nil {
		if f.troubles == nil {
			f.troubles = map[*observe.Run]*trouble{}
		}
		t = &trouble{}
		f.troubles[run] = t
		f.noted.Add(1)
	}
	change(t)
}

// stepPanicked must be called for the innermost step first.
func (f *failing) stepPanicked(run *observe.Run, s *step) {
	f.note(run, func(t *trouble) { t.panicked = cmp.Or(t.panicked, s) })
}

// written handles a write. Reconcilers often put the error of a refused write into a condition, and return none. It
// does not count if a later write of the same object succeeds.
func (f *failing) written(e *observe.Call) {
	object := objectRef{e.Kind.GroupKind(), e.Object}
	switch {
	case e.Run == nil:
	case e.Refused():
		path := append([]string{}, e.Path...)
		f.note(e.Run, func(t *trouble) { t.refused, t.object = path, object })
	case e.Err == nil && f.noted.Load() > 0:
		f.note(e.Run, func(t *trouble) {
			if t.object == object {
				t.refused = nil
			}
		})
	}
}

// take returns what is known of a run that has finished, and forgets it.
func (f *failing) take(run *observe.Run) trouble {
	if f.noted.Load() == 0 {
		return trouble{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.troubles[run]
	if t == nil {
		return trouble{}
	}
	delete(f.troubles, run)
	f.noted.Add(-1)
	return *t
}

func (f *failing) waits(run *observe.Run) {
	if f.length.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.objects[keyOf(run)]; known != nil {
		known.waits = true
	}
}

func (f *failing) finished(l *listener, e *observe.ReconcileFinished) {
	trouble := f.take(e.Run)
	failed := e.Err != nil || e.Panicked || trouble.refused != nil
	if !failed && f.length.Load() == 0 {
		return
	}
	var steps []*step
	switch {
	case e.Panicked && trouble.panicked != nil:
		steps = []*step{trouble.panicked}
	case e.Err != nil || e.Panicked:
		steps = failedSteps(l.controller(e.Run.Controller), e.Failures)
	case failed:
		steps = []*step{l.controller(e.Run.Controller).innermost(strings.Join(trouble.refused, "."))}
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
