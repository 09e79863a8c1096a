// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"trueup.dev/observe"
)

// maxSteps is the number of steps of a controller that have a label of their own.
const maxSteps = 500

// causeTypes are all types of causes. The last stands for types that are not listed.
var causeTypes = [...]observe.CauseType{
	observe.CauseObject, observe.CauseOwned, observe.CauseTracked, observe.CauseWatched, observe.CauseSource,
	observe.CauseStartUp, observe.CauseResync, observe.CauseRequeue, observe.CauseRetry, observe.CauseStaleRead,
	observe.CauseLoopDelay, observe.CauseUnknown,
}

func causeIndex(cause observe.CauseType) int {
	for i, c := range causeTypes {
		if c == cause {
			return i
		}
	}
	return len(causeTypes) - 1
}

// controller holds the metrics of a controller.
type controller struct {
	vectors *vectors
	name    string
	causes  [len(causeTypes)]prometheus.Counter
	root    *step

	mu     sync.Mutex // guards the addition of steps
	length int        // the number of steps
	other  *step      // stands for all steps beyond maxSteps
}

// of returns the metrics of the controller of a run.
func (l *listener) of(run *observe.Run) *controller {
	if c, ok := run.Attached(l).(*controller); ok {
		return c
	}
	return l.controller(run.Controller) // the listener was added after the run started
}

func (l *listener) controller(name string) *controller {
	if c, ok := l.controllers.Load(name); ok {
		return c.(*controller)
	}
	c := &controller{vectors: &l.vectors, name: name, root: &step{}}
	for i, cause := range causeTypes {
		c.causes[i] = l.causes.WithLabelValues(name, string(cause))
	}
	c.root.failing = l.failingNow.WithLabelValues(name, "")
	stored, _ := l.controllers.LoadOrStore(name, c)
	return stored.(*controller)
}

// started counts each type of cause once.
func (c *controller) started(run *observe.Run) {
	var counted [len(causeTypes)]bool
	for i := range run.Causes {
		index := causeIndex(run.Causes[i].Type)
		if !counted[index] {
			counted[index] = true
			c.causes[index].Inc()
		}
	}
}

// step holds the metrics of a step, and the steps below it. The root of a controller is not a step itself.
type step struct {
	label    string
	children atomic.Pointer[map[string]*step] // never changed, but replaced
	items    atomic.Pointer[step]             // stands for all items, if the steps below are items
	duration prometheus.Observer
	outcomes [4]prometheus.Counter // in the order of outcomes
	failing  prometheus.Gauge
}

var outcomes = [...]observe.Outcome{observe.Succeeded, observe.Halted, observe.Failed, observe.Panicked}

func (s *step) finished(e *observe.StepFinished) {
	s.duration.Observe(e.Duration.Seconds())
	for i, outcome := range outcomes {
		if outcome == e.Outcome {
			s.outcomes[i].Inc()
		}
	}
}

// child returns the known step of a name below s, or nil.
func (s *step) child(name string) *step {
	if items := s.items.Load(); items != nil {
		return items
	}
	if children := s.children.Load(); children != nil {
		return (*children)[name]
	}
	return nil
}

// find returns the step of a path that is not empty. It adds missing ones.
func (c *controller) find(path []string) *step {
	s := c.root
	for _, name := range path {
		next := s.child(name)
		if next == nil {
			next = c.add(s, name)
		}
		s = next
	}
	return s
}

// add adds a step below parent.
func (c *controller) add(parent *step, name string) *step {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := parent.child(name); s != nil {
		return s
	}
	if c.length >= maxSteps {
		if c.other == nil {
			c.other = c.newStep("other")
			c.other.items.Store(c.other)
		}
		return c.other
	}
	c.length++
	s := c.newStep(below(parent.label, name))
	children := map[string]*step{name: s}
	if known := parent.children.Load(); known != nil {
		maps.Copy(children, *known)
	}
	parent.children.Store(&children)
	return s
}

// addItem makes all steps with the parent of a path share the metrics of one step.
func (c *controller) addItem(path []string) {
	parent := c.find(path[:len(path)-1])
	if parent.items.Load() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if parent.items.Load() == nil {
		c.length++
		parent.items.Store(c.newStep(below(parent.label, "*")))
	}
}

func below(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

func (c *controller) newStep(label string) *step {
	s := &step{
		label:    label,
		duration: c.vectors.stepDuration.WithLabelValues(c.name, label),
		failing:  c.vectors.failingNow.WithLabelValues(c.name, label),
	}
	for i, outcome := range outcomes {
		s.outcomes[i] = c.vectors.steps.WithLabelValues(c.name, label, string(outcome))
	}
	return s
}

// innermost returns the innermost known step of a path whose names are joined with dots. An item ends the path, because
// its name may contain dots.
func (c *controller) innermost(path string) *step {
	s := c.root
	for path != "" {
		children := s.children.Load()
		if items := s.items.Load(); items != nil {
			return items
		} else if children == nil {
			return s
		}
		longest := ""
		for name := range *children {
			if rest, ok := strings.CutPrefix(path, name); ok && len(name) > len(longest) && (rest == "" || rest[0] == '.') {
				longest = name
			}
		}
		if longest == "" {
			return s
		}
		s, path = (*children)[longest], strings.TrimPrefix(path[len(longest):], ".")
	}
	return s
}
