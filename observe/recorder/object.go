// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/observe"
)

// Object is the state of an object, as one controller sees it.
type Object struct {
	Controller string `json:"controller"`
	Object     Ref    `json:"object"`
	State      State  `json:"state"`
	// Runs, Failures, NoOps and Writes count since the recorder has known the object.
	Runs     int64 `json:"runs"`
	Failures int64 `json:"failures"`
	NoOps    int64 `json:"noOps"`
	Writes   int64 `json:"writes"`
	// FailedInRow is the number of reconciles that failed since the last one that succeeded, and FailingSince is the
	// start of the first of these.
	FailedInRow  int       `json:"failedInRow,omitempty"`
	FailingSince time.Time `json:"failingSince,omitzero"`
	// Step and Error are the step and the error of the last reconcile, if it failed. If it halted, Step is the step that
	// did.
	Step  string `json:"step,omitempty"`
	Error string `json:"error,omitempty"`
	// HaltReason is why that step halted, if its error says so.
	HaltReason string `json:"haltReason,omitempty"`
	// Ready is the status of the condition Ready, and "" if it is not known. NotReady is its reason and message if the
	// status is False or Unknown.
	Ready    metav1.ConditionStatus `json:"ready,omitempty"`
	NotReady string                 `json:"notReady,omitempty"`
	// Dropped are the fields that the API server has not stored in the last writes of objects.
	Dropped []Dropped `json:"dropped,omitempty"`
	// Last is the start of the last finished reconcile, LastDuration its duration, LastOutcome its outcome, LastWrites the
	// number of its writes, and Causes its causes.
	Last         time.Time           `json:"last,omitzero"`
	LastDuration time.Duration       `json:"lastDurationNs,omitempty"`
	LastOutcome  Outcome             `json:"lastOutcome,omitempty"`
	LastWrites   int                 `json:"lastWrites,omitempty"`
	Causes       []observe.CauseType `json:"causes,omitempty"`
	Next         *Next               `json:"next,omitempty"`
	Loop         *Loop               `json:"loop,omitempty"`
	// RunningSince is the start of the reconcile that runs now.
	RunningSince time.Time `json:"runningSince,omitzero"`
	// StaleWaits is the number of times that a request waited for the caches since the last finished reconcile.
	StaleWaits int `json:"staleWaits,omitempty"`
	// WaitingSince is the start of the first of these.
	WaitingSince time.Time `json:"waitingSince,omitzero"`
	// LeaseWaits is the number of requests since the last finished reconcile that did nothing, because another process may
	// hold the lease of the manager.
	LeaseWaits int `json:"leaseWaits,omitempty"`
}

// Dropped are fields that the API server has not stored, because the schema of the kind does not have them.
type Dropped struct {
	Object      Ref      `json:"object"`
	Subresource string   `json:"subresource,omitempty"`
	Fields      []string `json:"fields"`
}

// String describes the fields.
func (d Dropped) String() string {
	return "the API server has not stored " + strings.Join(d.Fields, ", ") + " of " + d.Object.String() +
		": the schema of the kind does not have it"
}

// maxDropped limits the objects whose dropped fields are kept.
const maxDropped = 10

// drop updates the fields that were not stored with the writes of a run.
func (o *Object) drop(writes []Dropped) {
	lost := slices.ContainsFunc(writes, func(d Dropped) bool { return len(d.Fields) > 0 })
	if !lost && len(o.Dropped) == 0 {
		return
	}
	kept := slices.Clone(o.Dropped) // others may read the former one
	for _, write := range writes {
		kept = slices.DeleteFunc(kept, func(d Dropped) bool {
			return d.Object == write.Object && d.Subresource == write.Subresource
		})
		if len(write.Fields) > 0 && len(kept) < maxDropped {
			kept = append(kept, write)
		}
	}
	o.Dropped = kept
}

// State is the state of an object.
type State string

// The states of objects, the worst first.
const (
	// StatePanicked means that the last reconcile panicked.
	StatePanicked State = "Panicked"
	// StateLooping means that reconciles repeat.
	StateLooping State = "Looping"
	// StateFailing means that the last reconcile failed.
	StateFailing State = "Failing"
	// StateStuck means that a reconcile has been running for more than a minute.
	StateStuck State = "Stuck"
	// StateHalted means that a step ended the last reconcile without an error: it waits for an event, or for a requeue.
	StateHalted State = "Halted"
	// StateNotReady means that the last reconcile succeeded, and the condition Ready of the object is False.
	StateNotReady State = "NotReady"
	// StateWaiting means that the object waits for the caches, or for the lease of the manager, since the last reconcile.
	StateWaiting State = "Waiting"
	// StateRunning means that a reconcile runs.
	StateRunning State = "Running"
	// StateSucceeded means that the last reconcile succeeded.
	StateSucceeded State = "Succeeded"
)

// rank orders states by trouble: 0 is the worst.
func (s State) rank() int {
	switch s {
	case StatePanicked:
		return 0
	case StateLooping:
		return 1
	case StateFailing:
		return 2
	case StateStuck:
		return 3
	case StateHalted:
		return 4
	case StateNotReady:
		return 5
	case StateWaiting:
		return 6
	case StateRunning:
		return 7
	}
	return 8
}

// IsTrouble reports whether an operator should look at the object.
func (s State) IsTrouble() bool { return s.rank() <= StateStuck.rank() }

// stateOf returns the state at a time.
func (o *Object) stateOf(now time.Time) State {
	switch {
	case o.LastOutcome == Panicked:
		return StatePanicked
	case o.Loop != nil && o.Loop.continues(now):
		return StateLooping
	case o.LastOutcome == Failed:
		return StateFailing
	case !o.RunningSince.IsZero() && now.Sub(o.RunningSince) > observe.StuckAfter:
		return StateStuck
	case !o.RunningSince.IsZero():
		return StateRunning
	case o.StaleWaits+o.LeaseWaits > 0:
		return StateWaiting
	case o.Step != "":
		return StateHalted
	case o.Ready == metav1.ConditionFalse:
		return StateNotReady
	}
	return StateSucceeded
}

// update adds a finished run. The fields of a failure are set later.
func (o *Object) update(rec *runState, outcome Outcome) {
	o.Runs++
	o.Writes += int64(rec.writes)
	o.Last, o.LastDuration, o.LastOutcome, o.LastWrites = rec.started, rec.duration, outcome, rec.writes
	o.Next, o.StaleWaits, o.WaitingSince, o.LeaseWaits = rec.next, 0, time.Time{}, 0
	o.Causes = o.Causes[:0]
	for i := range rec.causes {
		o.Causes = append(o.Causes, rec.causes[i].Type)
	}
	if outcome == NoOp {
		o.NoOps++
	}
	o.updateLoop(rec, outcome)
	o.drop(rec.stored)
	if rec.readyKnown {
		o.Ready, o.NotReady = rec.ready, rec.notReady
	}
	o.HaltReason = ""
	if !outcome.IsFailure() {
		o.HaltReason = rec.haltReason
		o.FailedInRow, o.FailingSince, o.Step, o.Error = 0, time.Time{}, rec.haltedStep(), ""
		return
	}
	if o.FailedInRow == 0 {
		o.FailingSince = rec.started
	}
	o.Failures++
	o.FailedInRow++
}

// updateLoop sets the loop that the object is in. Reconciles without a change occur within loops too: each write of a
// loop causes an event. A loop ends with such a reconcile that was delayed because of it, unless it executed no step:
// then an event started it shortly before the end of the delay, and it only waits for the rest.
func (o *Object) updateLoop(rec *runState, outcome Outcome) {
	delay := time.Duration(0)
	for i := range rec.causes {
		if rec.causes[i].Type == observe.CauseLoopDelay {
			delay = max(delay, rec.causes[i].After)
		}
	}
	switch {
	case rec.loop != nil:
		loop := *rec.loop
		loop.Last, loop.Delay = rec.started, delay
		o.Loop = &loop
	case o.Loop == nil:
	case outcome == NoOp && delay > 0 && len(rec.steps) == 0:
	case outcome == NoOp && (delay > 0 || !o.Loop.continues(rec.started)):
		o.Loop = nil
	case delay > 0:
		loop := *o.Loop // others may read the former one
		loop.Last, loop.Delay = rec.started, delay
		o.Loop = &loop
	}
}

// continues reports whether a reconcile of the loop is expected after a time. The delays double, up to a minute.
func (l *Loop) continues(now time.Time) bool { return now.Sub(l.Last) < time.Minute+4*l.Delay }

// fail sets the step and the error of the last run.
func (o *Object) fail(run *Run) {
	o.Step, o.Error = failedStep(run), run.Error
	if o.Error == "" && run.Outcome == Panicked {
		o.Error = "the reconcile panicked"
	}
}

// failedStep returns the path of the innermost step that failed, with dots, or "" if none failed.
func failedStep(run *Run) string {
	if len(run.Failures) > 0 {
		return run.Failures[0].Step
	}
	path := []string{}
	for _, s := range run.Steps {
		if (s.Outcome == observe.Failed || s.Outcome == observe.Panicked) && len(s.Path) > len(path) {
			path = s.Path
		}
	}
	return strings.Join(path, ".")
}
