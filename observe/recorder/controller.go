// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
)

// Controller is what a controller has done since the recorder was added.
type Controller struct {
	Name string `json:"name"`
	// Object has the kind of the reconciled objects. It has no name.
	Object   Ref   `json:"object"`
	Runs     int64 `json:"runs"`
	Failures int64 `json:"failures"`
	NoOps    int64 `json:"noOps"`
	Writes   int64 `json:"writes"`
	// StaleWaits is the number of requests that waited for the caches.
	StaleWaits int64 `json:"staleWaits"`
	// CacheTimeouts is the number of requests that no longer waited for the caches, because they were too far behind.
	CacheTimeouts int64 `json:"cacheTimeouts"`
	// LongestWait is the longest time that an object waited for the caches, until its next reconcile.
	LongestWait time.Duration `json:"longestWaitNs"`
	// Duration is that of all reconciles together.
	Duration time.Duration `json:"durationNs"`
	// Causes is the number of causes by type.
	Causes map[observe.CauseType]int64 `json:"causes"`
	// Steps are the steps of all reconciles. A step follows the step that contains it.
	Steps []StepStats `json:"steps"`
	// OmittedSteps counts executions of steps that are not in Steps, because there are more than 500.
	OmittedSteps int64 `json:"omittedSteps,omitempty"`

	// Objects is the number of objects that the recorder has, and Trouble the number of those in trouble.
	Objects int `json:"objects"`
	Trouble int `json:"trouble"`
	// NotReady is the number of objects whose condition Ready is False.
	NotReady int `json:"notReady"`
	// Running is the number of reconciles that run now.
	Running int `json:"running"`
	// Waiting is the number of objects that wait for the caches now, and WaitingSince the start of the longest wait.
	Waiting      int       `json:"waiting"`
	WaitingSince time.Time `json:"waitingSince,omitzero"`
	// CacheWaits are the caches that have not been filled yet, sorted by kind. The controller cannot start without them.
	CacheWaits []CacheWait `json:"cacheWaits,omitempty"`
	// Problems are the first mistakes in the program that were found, see [observe.ProblemFound].
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is a mistake in the program, which makes no reconcile fail.
type Problem struct {
	// Step is the path of the step that has it, with dots.
	Step string `json:"step,omitempty"`
	Text string `json:"text"`
}

// maxProblems limits the problems of a controller.
const maxProblems = 20

func (r *Recorder) problem(e *observe.ProblemFound) {
	if e.Run == nil {
		return
	}
	found := Problem{strings.Join(e.Path, "."), limited(e.Text)}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.controllerNamed(e.Run.Name(), refOf(e.Run.Kind, types.NamespacedName{}))
	if len(c.Problems) < maxProblems && !slices.Contains(c.Problems, found) {
		c.Problems = append(slices.Clip(c.Problems), found)
	}
}

// CacheWait is a cache that a controller waits for when it starts. See [observe.CacheWait].
type CacheWait struct {
	// Object has the kind of the cached objects. It has no name.
	Object Ref       `json:"object"`
	Since  time.Time `json:"since"`
	// Error is why the cache is not filled. It is empty if that is unknown.
	Error string `json:"error,omitempty"`
}

// String describes the wait.
func (w CacheWait) String() string {
	text := "waits for the cache of " + schema.GroupKind{Group: w.Object.Group, Kind: w.Object.Kind}.String()
	if w.Error != "" {
		text += ": " + w.Error
	}
	return text
}

// cacheWaits updates the caches that a controller waits for.
func (r *Recorder) cacheWaits(e *observe.CacheWait) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.controllerNamed(e.Name(), Ref{})
	of := refOf(e.Kind, types.NamespacedName{})
	c.CacheWaits = slices.DeleteFunc(slices.Clone(c.CacheWaits), func(w CacheWait) bool { return w.Object == of })
	if !e.Ended {
		wait := CacheWait{Object: of, Since: e.Since}
		if e.Err != nil {
			wait.Error = textOf(e.Err)
		}
		c.CacheWaits = append(c.CacheWaits, wait)
		slices.SortFunc(c.CacheWaits, func(a, b CacheWait) int {
			return cmp.Or(strings.Compare(a.Object.Kind, b.Object.Kind), strings.Compare(a.Object.Group, b.Object.Group))
		})
	}
}

// cacheTimeout counts a request of a run that no longer waits for the caches.
func (r *Recorder) cacheTimeout(run *observe.Run) {
	if run == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.controllerNamed(run.Name(), refOf(run.Kind, types.NamespacedName{})).CacheTimeouts++
}

// Mean returns the mean duration of a reconcile.
func (c Controller) Mean() time.Duration {
	if c.Runs == 0 {
		return 0
	}
	return c.Duration / time.Duration(c.Runs)
}

// StepStats are the outcomes and the cost of a step.
type StepStats struct {
	Path []string `json:"path"`
	// Runs, Failures and Halts count executions. Failures include panics, and writes that were refused, see [Failed].
	Runs     int64 `json:"runs"`
	Failures int64 `json:"failures"`
	Halts    int64 `json:"halts"`
	// Duration is that of all executions together, including the steps below. Max is the longest.
	Duration time.Duration `json:"durationNs"`
	Max      time.Duration `json:"maxNs"`
	// Recent is the number of the last executions, at most 64, and RecentFailures the number of failures among them.
	Recent         int `json:"recent"`
	RecentFailures int `json:"recentFailures"`
	// LastError is the last error, with the time and the object.
	LastError  string    `json:"lastError,omitempty"`
	LastFailed time.Time `json:"lastFailed,omitzero"`
	LastObject Ref       `json:"lastObject,omitzero"`
}

// Mean returns the mean duration.
func (s StepStats) Mean() time.Duration {
	if s.Runs == 0 {
		return 0
	}
	return s.Duration / time.Duration(s.Runs)
}

// Name returns the last element of the path.
func (s StepStats) Name() string { return s.Path[len(s.Path)-1] }

const maxNodes = 500

// controller collects the statistics of a controller. It is protected by the mutex of the recorder.
type controller struct {
	Controller
	root  node
	nodes int
	found []*node // the nodes of the steps of the run that is added
	shape *shape  // the shape of the last run without a write, which most objects share
}

// node collects the statistics of a step.
type node struct {
	name  string
	stats StepStats // without the path
	// failures has a bit for each of the last executions, the last in the lowest bit.
	failures uint64
	below    []*node // in the order in which they were first executed
}

func (r *Recorder) controllerOf(rec *runState) *controller {
	return r.controllerNamed(rec.controller, rec.object)
}

func (r *Recorder) controllerNamed(name string, object Ref) *controller {
	c, ok := r.controllers[name]
	if !ok {
		c = &controller{Controller: Controller{Name: name, Causes: map[observe.CauseType]int64{}}}
		r.controllers[name] = c
	}
	if c.Object.Kind == "" { // unknown while the controller waits for its caches
		c.Object = Ref{Group: object.Group, Version: object.Version, Kind: object.Kind}
	}
	return c
}

// add adds a finished run.
func (c *controller) add(rec *runState, outcome Outcome) {
	c.Runs++
	c.Writes += int64(rec.writes)
	c.Duration += rec.duration
	switch {
	case outcome == NoOp:
		c.NoOps++
	case outcome.IsFailure():
		c.Failures++
	}
	for i := range rec.causes {
		c.Causes[rec.causes[i].Type]++
	}
	c.found = c.found[:0]
	for i := range rec.steps {
		s := &rec.steps[i]
		parent := &c.root
		if s.parent >= 0 {
			parent = c.found[s.parent]
		}
		n := c.nodeBelow(parent, s.name)
		c.found = append(c.found, n)
		if n == nil {
			c.OmittedSteps++
			continue
		}
		n.add(s)
		if s.outcome == observe.Failed || s.outcome == observe.Panicked {
			n.fail(s.err, rec)
		} else if refused, ok := rec.refused[i]; ok {
			n.fail(refused.Error, rec)
		}
	}
}

// waited measures how long an object has waited for the caches, if it has.
func (c *controller) waited(o *Object, rec *runState) {
	if o.StaleWaits > 0 {
		c.LongestWait = max(c.LongestWait, rec.started.Sub(o.WaitingSince))
	}
}

// nodeBelow returns a node, or nil if there are too many.
func (c *controller) nodeBelow(parent *node, name string) *node {
	if parent == nil {
		return nil
	}
	for _, n := range parent.below {
		if n.name == name {
			return n
		}
	}
	if c.nodes == maxNodes {
		return nil
	}
	c.nodes++
	n := &node{name: name}
	parent.below = append(parent.below, n)
	return n
}

func (n *node) add(s *step) {
	n.stats.Runs++
	n.stats.Duration += s.duration
	n.stats.Max = max(n.stats.Max, s.duration)
	n.failures <<= 1
	if s.outcome == observe.Halted {
		n.stats.Halts++
	}
}

// fail marks the execution that was added last as a failure.
func (n *node) fail(err string, rec *runState) {
	n.stats.Failures++
	n.failures |= 1
	n.stats.LastFailed, n.stats.LastObject = rec.started, rec.object
	n.stats.LastError = err
}

// snapshot returns a copy.
func (c *controller) snapshot() Controller {
	snapshot := c.Controller
	snapshot.Causes = make(map[observe.CauseType]int64, len(c.Causes))
	for t, count := range c.Causes {
		snapshot.Causes[t] = count
	}
	snapshot.Steps = nil
	for _, n := range c.root.below {
		n.appendTo(&snapshot.Steps, nil)
	}
	return snapshot
}

func (n *node) appendTo(steps *[]StepStats, parent []string) {
	stats := n.stats
	stats.Path = append(slices.Clone(parent), n.name)
	stats.Recent = int(min(n.stats.Runs, 64))
	stats.RecentFailures = bits.OnesCount64(n.failures)
	*steps = append(*steps, stats)
	for _, below := range n.below {
		below.appendTo(steps, stats.Path)
	}
}

// Controllers returns the controllers, sorted by name.
func (r *Recorder) Controllers() []Controller {
	now := time.Now()
	running := r.running()
	r.mu.Lock()
	defer r.mu.Unlock()
	objects, trouble, runs, waits := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	since, notReady := map[string]time.Time{}, map[string]int{}
	for key, run := range running {
		runs[key.controller]++
		if _, ok := r.objects[key]; ok {
			continue
		}
		objects[key.controller]++
		r.controllerNamed(key.controller, run.object)
		if now.Sub(run.started) > observe.StuckAfter {
			trouble[key.controller]++
		}
	}
	for key, o := range r.objects {
		objects[key.controller]++
		if at := o.summary.WaitingSince; !at.IsZero() {
			waits[key.controller]++
			if first := since[key.controller]; first.IsZero() || at.Before(first) {
				since[key.controller] = at
			}
		}
		summary := o.summary
		if summary.Ready == metav1.ConditionFalse {
			notReady[key.controller]++
		}
		summary.RunningSince = running[key].started
		if summary.stateOf(now).IsTrouble() {
			trouble[key.controller]++
		}
	}
	all := []Controller{}
	for name, c := range r.controllers {
		snapshot := c.snapshot()
		snapshot.Objects, snapshot.Trouble, snapshot.Running = objects[name], trouble[name], runs[name]
		snapshot.NotReady = notReady[name]
		snapshot.Waiting, snapshot.WaitingSince = waits[name], since[name]
		all = append(all, snapshot)
	}
	slices.SortFunc(all, func(a, b Controller) int { return strings.Compare(a.Name, b.Name) })
	return all
}
