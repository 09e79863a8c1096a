// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Query selects objects. The zero value selects all.
type Query struct {
	// Search are words that must all occur in the controller, the kind, the name, the state, the failed step, the error
	// or the reason why the object is not Ready. Case does not matter.
	Search string
	// Controller is the name of the controller.
	Controller string
	// Kind is the kind, its plural or its kind with the group ("databases.example.com"). Case does not matter.
	Kind string
	// Name is the name of the object, or its namespace and name with a slash.
	Name string
	// Offset skips objects, and Limit limits their number. 0 means no limit.
	Offset, Limit int
}

// Objects returns the objects that a query selects, the worst trouble first, and the number of objects without the
// limit of the query.
func (r *Recorder) Objects(query Query) (objects []Object, total int) {
	now := time.Now()
	words := strings.Fields(strings.ToLower(query.Search))
	running := r.running()
	r.mu.Lock()
	defer r.mu.Unlock()
	selected := []*Object{}
	consider := func(o *Object, search string) {
		o.State = o.stateOf(now)
		if query.selects(o) && matches(o, search, words) {
			selected = append(selected, o)
		}
	}
	for key, o := range r.objects {
		o.summary.RunningSince = running[key].started
		consider(&o.summary, o.search)
	}
	for key, run := range running {
		if _, ok := r.objects[key]; !ok {
			o := &Object{Controller: key.controller, Object: run.object, RunningSince: run.started}
			consider(o, strings.ToLower(key.controller+" "+o.Object.String()))
		}
	}
	slices.SortFunc(selected, byTrouble)
	total = len(selected)
	selected = selected[min(max(query.Offset, 0), total):]
	if query.Limit > 0 {
		selected = selected[:min(query.Limit, len(selected))]
	}
	for _, o := range selected {
		objects = append(objects, o.copy())
	}
	return objects, total
}

func (o *Object) copy() Object {
	c := *o
	c.Causes = slices.Clone(o.Causes) // it is reused
	if c.Loop != nil && !c.Loop.continues(time.Now()) {
		c.Loop = nil
	}
	return c
}

func byTrouble(a, b *Object) int {
	if c := cmp.Compare(a.State.rank(), b.State.rank()); c != 0 {
		return c
	}
	if c := cmp.Compare(b.FailedInRow, a.FailedInRow); c != 0 {
		return c
	}
	if c := b.Last.Compare(a.Last); c != 0 {
		return c
	}
	return cmp.Or(
		strings.Compare(a.Controller, b.Controller), strings.Compare(a.Object.Namespace, b.Object.Namespace),
		strings.Compare(a.Object.Name, b.Object.Name),
	)
}

func (q *Query) selects(o *Object) bool {
	if q.Controller != "" && q.Controller != o.Controller {
		return false
	}
	if q.Name != "" && q.Name != o.Object.Name && q.Name != o.Object.Key() {
		return false
	}
	return q.Kind == "" || isKind(o.Object, strings.ToLower(q.Kind))
}

// isKind compares with "database", "databases" and "databases.example.com".
func isKind(object Ref, name string) bool {
	resource, group, qualified := strings.Cut(name, ".")
	if qualified && group != object.Group && !strings.HasSuffix(group, "."+object.Group) {
		return false
	}
	kind := strings.ToLower(object.Kind)
	plural := kind + "s"
	switch {
	case strings.HasSuffix(kind, "s"), strings.HasSuffix(kind, "x"), strings.HasSuffix(kind, "ch"):
		plural = kind + "es"
	case strings.HasSuffix(kind, "y"):
		plural = strings.TrimSuffix(kind, "y") + "ies"
	}
	return resource == kind || resource == plural
}

func matches(o *Object, search string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(search, word) && !strings.Contains(strings.ToLower(string(o.State)), word) &&
			!strings.Contains(strings.ToLower(o.Step), word) && !strings.Contains(strings.ToLower(o.Error), word) &&
			!strings.Contains(strings.ToLower(o.NotReady), word) {
			return false
		}
	}
	return true
}

// History is an object with its runs.
type History struct {
	Object
	// History are the runs that are kept, the newest first, including the one that runs now.
	History []Run `json:"history"`
}

// Object returns an object of a controller with its runs. It reports false if the recorder does not have it.
func (r *Recorder) Object(controller string, object types.NamespacedName) (History, bool) {
	key := objectKey{controller, object}
	history := History{History: []Run{}}
	running, isRunning := r.running()[key]
	if isRunning {
		history.Object = Object{Controller: controller, Object: running.object}
		if run, ok := running.state.current(key, r.options.Mask); ok {
			history.History = append(history.History, run)
		}
	}
	kept, found := r.copyRuns(key, &history)
	history.RunningSince = running.started
	history.State = history.stateOf(time.Now())
	for _, data := range kept { // outside of the lock
		var run Run
		if err := json.Unmarshal(data, &run); err == nil { // it is what this package has encoded
			history.History = append(history.History, run)
		}
	}
	slices.SortStableFunc(history.History, func(a, b Run) int { return b.Started.Compare(a.Started) })
	splitNoOps(history.History)
	return history, found || isRunning
}

// ControllerOf returns the name of a controller that reconciles an object of a cluster, see [observe.Run], if the
// recorder has the object, or "". If there are several, it is the first by name.
func (r *Recorder) ControllerOf(object Ref, cluster string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := ""
	for name, c := range r.controllers {
		if c.Object.Kind != object.Kind || c.Object.Group != object.Group || clusterOf(name) != cluster {
			continue
		}
		key := objectKey{name, types.NamespacedName{Namespace: object.Namespace, Name: object.Name}}
		if _, ok := r.objects[key]; ok && (found == "" || name < found) {
			found = name
		}
	}
	return found
}

// clusterOf returns the cluster in the full name of a controller. Other names of controllers have no @.
func clusterOf(controller string) string {
	_, cluster, _ := strings.Cut(controller, "@")
	return cluster
}

// splitNoOps moves the number of runs without a write from the run after the last of these to this one.
func splitNoOps(runs []Run) {
	for i := 1; i < len(runs); i++ {
		if after := &runs[i-1]; runs[i].Outcome == NoOp && runs[i].Loop == nil && after.NoOpsBefore > 0 {
			runs[i].NoOpsBefore, after.NoOpsBefore = after.NoOpsBefore-1, 0
		}
	}
}

// copyRuns copies what is known of an object, and returns its kept runs, which never change.
func (r *Recorder) copyRuns(key objectKey, history *History) (kept [][]byte, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, found := r.objects[key]
	if !found {
		return nil, false
	}
	history.Object = o.summary.copy()
	if o.noOp.shape != nil {
		run := o.noOp.result()
		if o.noOps > 0 { // it is the last run
			run.NoOpsBefore = o.noOps - 1
		}
		history.History = append(history.History, run)
	}
	for _, run := range o.runs {
		kept = append(kept, run.json)
	}
	return kept, true
}

type runningRun struct {
	started time.Time
	object  Ref
	state   *runState
}

// running returns the runs that have not finished.
func (r *Recorder) running() map[objectKey]runningRun {
	running := map[objectKey]runningRun{}
	r.activeMu.Lock()
	states := slices.Collect(maps.Keys(r.active))
	r.activeMu.Unlock()
	for _, rec := range states {
		rec.mu.Lock()
		if rec.run != nil {
			key := objectKey{rec.controller, rec.run.Object}
			running[key] = runningRun{rec.started, rec.object, rec}
		}
		rec.mu.Unlock()
	}
	return running
}

// Unfinished is a reconcile that runs now.
type Unfinished struct {
	Object Ref       `json:"object"`
	Since  time.Time `json:"since"`
	// Step is the path of the step that has not finished, with dots.
	Step string `json:"step,omitempty"`
}

// Unfinished returns the reconciles of a controller that run now, the first that started first.
func (r *Recorder) Unfinished(controller string) []Unfinished {
	all := []Unfinished{}
	for key, run := range r.running() {
		if current, ok := run.state.current(key, r.options.Mask); ok && key.controller == controller {
			all = append(all, Unfinished{run.object, run.started, current.OpenStep()})
		}
	}
	slices.SortFunc(all, func(a, b Unfinished) int { return a.Since.Compare(b.Since) })
	return all
}

// Bytes returns the estimated memory of what the recorder has kept.
func (r *Recorder) Bytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes.total()
}
