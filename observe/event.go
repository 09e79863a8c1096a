// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/step"
)

// Event is one of the events of this package. The events of one [Run] are, in this order: [ReconcileStarted]; then
// [StepStarted], [StepFinished], [Call], [Tracked] and [StuckFound] as they happen; then [LoopFound], if the run is
// part of a loop; then [ReconcileFinished]. A run that waits for the caches has a [StaleWait] instead of steps.
//
// The other events of type [Reported] occur at any time. A [CacheWait], which is about a controller that cannot start,
// and a [HandlerMemory] belong to no run.
//
// Events are reused: a listener must not keep one. It may keep a [Run], but that keeps objects of caches in memory.
type Event interface{ event() }

// ReconcileStarted is the start of a reconcile.
type ReconcileStarted struct{ Run *Run }

// ReconcileFinished is the end of a reconcile.
type ReconcileFinished struct {
	Run *Run
	// Result and Err are what the reconciler returned to the controller.
	Result reconcile.Result
	Err    error
	// Failures are the errors that make up Err, with the steps that returned them. It is empty without an error, and for
	// controllers that have no steps.
	Failures []Failure
	// Refused are the writes of the run that the API server refused for a reason that reconcilers do not expect, see
	// [Call.Refused], without writes of objects that a later write of the run succeeded for. Reconcilers often put such an
	// error into a condition and return none. The creation of a child whose name is taken is among them if a reconciler of
	// this module reflects it, with the owner of the object that has the name. At most 100 are kept.
	Refused []Failure
	// Duration is the duration of the reconcile.
	Duration time.Duration
	// Panicked reports whether the reconcile panicked. Result and Err are zero then.
	Panicked bool
	// Panic is the value with which it panicked, and the function and the line of code that did.
	Panic string
}

// Failed reports whether the reconcile is a failure: it returned an error, panicked, or had a write refused.
func (e *ReconcileFinished) Failed() bool { return e.Err != nil || e.Panicked || len(e.Refused) > 0 }

// Failure is an error of a step.
type Failure struct {
	// Step is the path of the innermost step that returned the error: the names of the steps from the root, joined with
	// dots.
	Step string
	// Object is the object that the error is about, for example "Secret default/db". It is empty if no step has named
	// one.
	Object string
	// Err is the error as the innermost step returned it, or the answer to a refused write.
	Err error
}

// Origin returns the step and, if known, the object, for example "Website.Child: Secret default/db".
func (f Failure) Origin() string { return step.Origin(f.Step, f.Object) }

// StepStarted is the start of a step, which is the work of one reconciler.
type StepStarted struct {
	Run *Run
	// Path is the names of the steps from the root to this one. The first is the name of the root reconciler.
	Path []string
	// Item reports whether the step is one of a varying number of equal steps, such as a child of a set or a turn of a
	// loop. The last name of the path is data then, for example the name of an object.
	Item bool
}

// StepFinished is the end of a step.
type StepFinished struct {
	Run *Run
	// Path and Item are the same as in [StepStarted].
	Path []string
	Item bool
	// Result and Err are what the step returned. Both are zero if it panicked.
	Result reconcile.Result
	Err    error
	// Outcome classifies the result.
	Outcome Outcome
	// Reason is why the step halted, if its error says more than that it halts.
	Reason string
	// Duration is the duration of the step, including the steps below it.
	Duration time.Duration
}

// Outcome classifies the result of a step.
type Outcome string

const (
	// Succeeded is the outcome without an error.
	Succeeded Outcome = "Succeeded"
	// Halted is the outcome of a step that stops the steps after it without an error, for example with
	// reconcilers.ErrHaltSubReconcilers.
	Halted Outcome = "Halted"
	// Failed is the outcome with an error.
	Failed Outcome = "Failed"
	// Panicked is the outcome of a step that panicked.
	Panicked Outcome = "Panicked"
)

// Tracked means that the reconciled object depends on other objects from now on: changes of these enqueue it.
type Tracked struct {
	Run *Run
	// Path is the path of the step that tracks the objects.
	Path []string
	Kind schema.GroupKind
	// Namespace is the namespace of the tracked objects. It is empty for all namespaces and for kinds without namespaces.
	Namespace string
	// Name is the name of the tracked object. It is empty if Selector is set.
	Name string
	// Selector selects the tracked objects by their labels. It is empty if Name is set.
	Selector string
}

func (*ReconcileStarted) event()  {}
func (*ReconcileFinished) event() {}
func (*StepStarted) event()       {}
func (*StepFinished) event()      {}
func (*Call) event()              {}
func (*Tracked) event()           {}
