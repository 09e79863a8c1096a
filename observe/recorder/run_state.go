// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
)

// maxItems limits the steps and the calls of one run, and maxError the bytes of an error.
const (
	maxItems = 200
	maxError = 1024
)

// runState is a run that has not finished. It is used for many runs.
type runState struct {
	mu sync.Mutex // until the run has finished
	// run is nil after the run has finished, so late events of goroutines are ignored.
	run *observe.Run

	id            string
	object        Ref
	controller    string
	started       time.Time
	duration      time.Duration
	causes        []Cause
	omittedCauses int
	steps         []step
	calls         []stepCall
	cachedReads   int
	writes        int
	omitted       int
	loop          *Loop
	next          *Next
	// waited reports whether the run did nothing but wait for the caches, and withoutLease whether it did nothing because
	// another process may hold the lease of the manager.
	waited, withoutLease bool
	// ready is the status of the condition Ready of the reconciled object after the run, if it is known, and notReady the
	// reason and the message if it is False or Unknown.
	ready      metav1.ConditionStatus
	notReady   string
	readyKnown bool
	// haltReason is why the innermost step that halted did, and haltDepth its depth.
	haltReason string
	haltDepth  int
	// stored are the writes that succeeded, with the fields that they lost.
	stored []Dropped
	// refused are the refused writes, by the index of their step, or -1.
	refused map[int]Failure
	// journal is the journal of the object, or nil.
	journal *journal
}

type step struct {
	name        string
	parent      int32 // -1 for the root
	depth       int32
	duration    time.Duration
	outcome     observe.Outcome // "" until it has finished
	err         string
	cachedReads int
}

type stepCall struct {
	step int // -1 outside of steps
	Call
}

// start prepares the state for a run.
func (r *runState) start(run *observe.Run, journal *journal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run = run
	r.id, r.controller, r.object, r.started = run.ID, run.Name(), refOf(run.Kind, run.Object), run.Started
	r.duration, r.omittedCauses, r.cachedReads, r.writes, r.omitted = 0, run.OmittedCauses, 0, 0, 0
	r.causes, r.steps, r.calls = r.causes[:0], r.steps[:0], r.calls[:0]
	r.stored = r.stored[:0]
	r.ready, r.notReady, r.readyKnown = "", "", false
	r.haltReason, r.haltDepth = "", 0
	r.loop, r.next, r.waited, r.withoutLease, r.refused, r.journal = nil, nil, false, false, nil, journal
}

// find returns the last step with the path, or -1.
func (r *runState) find(path []string, open bool) int {
	if len(path) == 0 {
		return -1
	}
	for i := len(r.steps) - 1; i >= 0; i-- {
		if (!open || r.steps[i].outcome == "") && r.hasPath(i, path) {
			return i
		}
	}
	return -1
}

func (r *runState) hasPath(i int, path []string) bool {
	if int(r.steps[i].depth) != len(path) {
		return false
	}
	for at := len(path) - 1; i >= 0; at-- {
		if r.steps[i].name != path[at] {
			return false
		}
		i = int(r.steps[i].parent)
	}
	return true
}

func (r *runState) stepStarted(e *observe.StepStarted) {
	if len(e.Path) == 0 {
		return
	}
	if len(r.steps) == maxItems {
		r.omitted++
		return
	}
	parent := r.find(e.Path[:len(e.Path)-1], true)
	if parent < 0 && len(e.Path) > 1 {
		return // the steps above were not recorded
	}
	r.steps = append(r.steps, step{
		name: e.Path[len(e.Path)-1], parent: int32(parent), depth: int32(len(e.Path)),
	})
}

func (r *runState) stepFinished(e *observe.StepFinished) {
	i := r.find(e.Path, true)
	if i < 0 {
		return
	}
	s := &r.steps[i]
	s.duration, s.outcome = e.Duration, e.Outcome
	if e.Outcome == observe.Halted && len(e.Path) > r.haltDepth {
		r.haltReason, r.haltDepth = limited(e.Reason), len(e.Path)
	}
	if e.Err == nil || e.Outcome == observe.Halted {
		return
	}
	s.err = textOf(e.Err)
	for _, below := range r.steps[i+1:] { // show an error once, at the innermost step
		if int(below.parent) == i && below.outcome == observe.Failed && strings.Contains(s.err, below.err) {
			s.err = ""
			return
		}
	}
}

func (r *runState) call(e *observe.Call, mask observe.Mask) {
	if r.journal != nil {
		r.journal.call(e, mask)
	}
	if e.IsWrite() && isAbout(r.run, e.Kind, e.Object) {
		if state, ok := e.State(); ok {
			r.setReady(state)
		}
	}
	at := r.find(e.Path, false)
	if e.Cached && e.Err == nil {
		if at < 0 {
			r.cachedReads++
		} else {
			r.steps[at].cachedReads++
		}
		return
	}
	if e.IsWrite() && e.Err == nil && !e.NoOp && !e.DryRun {
		r.writes++
	}
	if e.IsWrite() && e.Err == nil && !e.DryRun && !e.NoOp {
		r.stored = append(r.stored, Dropped{refOf(e.Kind, e.Object), e.Subresource, e.Dropped})
	}
	if len(r.calls) == maxItems {
		r.omitted++
		return
	}
	call := Call{
		Verb: e.Verb, Apply: e.Apply, DryRun: e.DryRun, Object: refOf(e.Kind, e.Object), Subresource: e.Subresource,
		Before: e.Before, After: e.After, NoOp: e.NoOp, Dropped: e.Dropped, Items: e.Items, Cached: e.Cached,
		Duration: e.Duration,
	}
	if e.Err != nil {
		call.Error, call.Reason = textOf(e.Err), apierrors.ReasonForError(e.Err)
	} else if e.IsWrite() && !e.NoOp {
		call.Changes = e.Changes(mask)
	}
	r.calls = append(r.calls, stepCall{at, call})
}

// isAbout reports whether an object is the reconciled one.
func isAbout(run *observe.Run, kind schema.GroupVersionKind, object types.NamespacedName) bool {
	return run.Kind.GroupKind() == kind.GroupKind() && run.Object == object
}

func (r *runState) setReady(state observe.State) {
	r.ready, r.notReady, r.readyKnown = state.Ready, "", true
	if state.Ready == metav1.ConditionFalse || state.Ready == metav1.ConditionUnknown {
		r.notReady = state.ReadyReason
		if state.ReadyMessage != "" {
			r.notReady = limited(strings.TrimPrefix(state.ReadyReason+": "+state.ReadyMessage, ": "))
		}
	}
}

// readyFrom sets the condition Ready from the causes of a run that has not written it. The state of an update is
// computed if compare is set.
func (r *runState) readyFrom(run *observe.Run, compare bool) {
	for i := len(run.Causes) - 1; i >= 0 && !r.readyKnown; i-- {
		c := &run.Causes[i]
		switch {
		case !isAbout(run, c.Kind, c.Object):
		case c.Verb == observe.Deleted:
			r.setReady(observe.State{})
		case c.Verb == observe.Created, c.Verb == observe.Updated && compare:
			if state, ok := c.State(); ok {
				r.setReady(state)
			}
		}
	}
}

// refuse records the refused writes of the run.
func (r *runState) refuse(writes []observe.Failure) {
	for _, write := range writes {
		if r.refused == nil {
			r.refused = map[int]Failure{}
		}
		at := len(r.steps) - 1
		for at >= 0 && strings.Join(r.path(at), ".") != write.Step {
			at--
		}
		r.refused[at] = failureOf(write)
	}
}

// takeCauses copies the causes of the run. Changes are computed if compare is set.
func (r *runState) takeCauses(run *observe.Run, mask observe.Mask, compare bool) {
	r.readyFrom(run, compare)
	started := false
	for i := range run.Causes {
		c := &run.Causes[i]
		if c.Type == observe.CauseStartUp {
			if started {
				continue // one for each child that existed
			}
			started = true
		}
		cause := Cause{
			Type: c.Type, At: c.At, Object: refOf(c.Kind, c.Object), Verb: c.Verb, Count: c.Count, After: c.After,
			Attempt: c.Attempt,
		}
		if c.Err != nil {
			cause.Error = textOf(c.Err)
		}
		if compare && c.Verb == observe.Updated {
			cause.By, cause.Changes = c.By(), c.Changes(mask)
		}
		r.causes = append(r.causes, cause)
	}
}

// current returns the run as far as it has come. It reports false if it is no longer the run of the object.
func (r *runState) current(key objectKey, mask observe.Mask) (Run, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.run == nil || key != (objectKey{r.controller, r.run.Object}) {
		return Run{}, false
	}
	r.causes = r.causes[:0]
	r.takeCauses(r.run, mask, true)
	run := r.result(Running)
	r.causes = r.causes[:0]
	return run, true
}

// haltedStep returns the path of the innermost step that halted, with dots, or "" if none did.
func (r *runState) haltedStep() string {
	halted, depth := -1, int32(0)
	for i := range r.steps {
		if s := &r.steps[i]; s.outcome == observe.Halted && s.depth > depth {
			halted, depth = i, s.depth
		}
	}
	if halted < 0 {
		return ""
	}
	return strings.Join(r.path(halted), ".")
}

// result returns the run. The state can be used for another run afterwards.
func (r *runState) result(outcome Outcome) Run {
	run := Run{
		ID: r.id, Started: r.started, Duration: r.duration, Outcome: outcome, Causes: slices.Clone(r.causes),
		OmittedCauses: r.omittedCauses, CachedReads: r.cachedReads, Writes: r.writes, Omitted: r.omitted, Loop: r.loop,
		Next: r.next,
	}
	for i, s := range r.steps {
		run.Steps = append(run.Steps, Step{
			Path: r.path(i), Duration: s.duration, Outcome: s.outcome, Error: s.err,
			CachedReads: s.cachedReads,
		})
	}
	for _, call := range r.calls {
		if call.step < 0 {
			run.Calls = append(run.Calls, call.Call)
			continue
		}
		s := &run.Steps[call.step]
		s.Calls = append(s.Calls, call.Call)
	}
	return run
}

func (r *runState) path(i int) []string {
	path := make([]string, r.steps[i].depth)
	for at := len(path) - 1; i >= 0; at-- {
		path[at] = r.steps[i].name
		i = int(r.steps[i].parent)
	}
	return path
}

func textOf(err error) string { return limited(err.Error()) }

func limited(text string) string {
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "") + "…"
	}
	return text
}
