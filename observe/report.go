// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reported is an event that a reconciler, a handler or an informer of this module reports with [Hub.Report]. Its Run is
// nil outside of reconciles, and if the controller is not observed.
type Reported interface {
	Event
	// during sets the run of the event.
	during(r *running)
}

// IsObserved reports whether a context is the context of a run that is observed.
func IsObserved(ctx context.Context) bool { return runningFrom(ctx) != nil }

// Report passes an event to the listeners of the run of a context, and sets the Run of the event. Without a run, it
// passes the event to the listeners of h.
func (h *Hub) Report(ctx context.Context, event Reported) {
	if r := runningFrom(ctx); r != nil {
		event.during(r)
		h = r.controller.hub
	}
	h.Observe(ctx, event)
}

// StaleWait means that the reconcile does nothing yet, because the caches do not have the last writes for the object. A
// run with this event has no steps.
type StaleWait struct {
	Run *Run
	// Reconciler is the name of the root reconciler.
	Reconciler string
	// Wait is the time until the request is tried again.
	Wait time.Duration
}

// LoopFound means that reconciles of an object repeat without a reason from outside, or that another client changes
// what they write back and forth. Reconcilers of this module delay further reconciles of the object. The reconciles of
// other reconcilers are not delayed, and the event is repeated at most twice a minute while the loop lasts.
type LoopFound struct {
	Run *Run
	// Reconciler is the name of the root reconciler, and Cause is what keeps the loop going. Both are empty if the
	// reconciler is not one of this module.
	Reconciler string
	Cause      LoopCause
	// Reconciles is the number of reconciles of the loop so far, and Within is the time that they took.
	Reconciles int
	Within     time.Duration
	// Repeats describes what is repeated: the step, the object, and the changed fields, without values; or the field that
	// changes back and forth, with its writers.
	Repeats []string
}

// LoopCause is what keeps a loop going.
type LoopCause string

const (
	// LoopSelf means that each reconcile triggers the next one.
	LoopSelf LoopCause = "self"
	// LoopWriter means that another field manager changes a field back and forth, or creates or deletes an object in turns
	// with the controller.
	LoopWriter LoopCause = "writer"
	// LoopRefused means that the API server stores another value than the controller sends.
	LoopRefused LoopCause = "refused"
)

// Deferred means that a request continues later without an error, or that it no longer waits.
type Deferred struct {
	Run *Run
	// Reconciler is the name of the root reconciler.
	Reconciler string
	Reason     DeferReason
}

// DeferReason is the reason of a [Deferred].
type DeferReason string

const (
	// DeferHaltRetry means that the request halted without a RequeueAfter, and is retried with back-off.
	DeferHaltRetry DeferReason = "HaltRetry"
	// DeferHaltWait means that the request halted, and continues when a tracked object changes.
	DeferHaltWait DeferReason = "HaltWait"
	// DeferLoop means that the reconcile does nothing yet, because the object is in a loop.
	DeferLoop DeferReason = "Loop"
	// DeferStaleTimeout means that the caches do not have the last writes after the longest time that a request waits for
	// them: the reconcile reads from the API server. See [StaleWait].
	DeferStaleTimeout DeferReason = "StaleTimeout"
	// DeferLease means that the reconcile does nothing yet, because another process may hold the lease of the manager.
	DeferLease DeferReason = "Lease"
)

// ErrorReflected means that an error of a child is shown in the status of its parent, and not returned.
type ErrorReflected struct {
	Run *Run
	// Reconciler is the name of the root reconciler.
	Reconciler string
	// Reason is the reason of the error, as in the answers of an API server, or "Unknown".
	Reason string
}

// TrackedUnwatched means that an object is tracked whose kind the controller does not watch: its changes enqueue
// nothing.
type TrackedUnwatched struct {
	Run *Run
	// Reconciler is the name of the root reconciler.
	Reconciler string
	Kind       schema.GroupKind
}

// ProblemFound means that a mistake in the program was found, which makes no reconcile fail. It occurs once for each.
type ProblemFound struct {
	Run *Run
	// Path is the path of the step that has the mistake.
	Path []string
	// Text says what is wrong, what follows from it, and how to mend it.
	Text string
}

// AttemptFailed means that an attempt failed that is repeated later, and whose error no reconcile returns.
type AttemptFailed struct {
	Run     *Run
	Attempt Attempt
	// Kind is the kind that the attempt is about.
	Kind schema.GroupKind
	// Operation is the operation of a [UseStore]: get, set, delete, encode or decode.
	Operation string
	Err       error
}

// Attempt is what was attempted in an [AttemptFailed].
type Attempt string

const (
	// ReadSchema reads the defaults of a kind from the API server.
	ReadSchema Attempt = "ReadSchema"
	// IndexOwners indexes the children of a kind by owner, when a controller starts.
	IndexOwners Attempt = "IndexOwners"
	// StartInformer starts an informer of package informer.
	StartInformer Attempt = "StartInformer"
	// UseStore uses the store of an informer.
	UseStore Attempt = "UseStore"
)

// KindServed means that a step has learned whether a kind that it needs is served. While it is not, the step does not
// run.
type KindServed struct {
	Run *Run
	// Reconciler is the name of the root reconciler. Step is the name of the step.
	Reconciler, Step string
	Kind             schema.GroupVersionKind
	Served           bool
	// Cluster is the name of the cluster, see [Run].
	Cluster string
}

// StoreMissed means that an informer reads from the API server, because its store does not have what it should.
type StoreMissed struct {
	Run *Run
	// Kind is the kind of the objects.
	Kind schema.GroupKind
}

// HandlerCalled is a finished call of a handler of package operator.
type HandlerCalled struct {
	Run *Run
	// Handler is the name of the handler.
	Handler string
	// Action is the action that the handler was called for, for example Created.
	Action string
	// Result is done, requeued, failed, exhausted or panicked.
	Result string
	// Exhausted reports whether the handler gives up on the resource until that changes. The result is panicked then if
	// the last call panicked.
	Exhausted bool
}

// HandlerMemory means that the number of resources that a handler of package operator remembers has changed. It belongs
// to no run.
type HandlerMemory struct {
	// Handler is the name of the handler.
	Handler string
	// Cluster is the name of the cluster of the resources, see [Run].
	Cluster string
	// Change is added to the number.
	Change int
}

func (*StaleWait) event()        {}
func (*LoopFound) event()        {}
func (*Deferred) event()         {}
func (*ErrorReflected) event()   {}
func (*TrackedUnwatched) event() {}
func (*ProblemFound) event()     {}
func (*AttemptFailed) event()    {}
func (*KindServed) event()       {}
func (*StoreMissed) event()      {}
func (*HandlerCalled) event()    {}
func (*HandlerMemory) event()    {}

func (e *StaleWait) during(r *running) {
	e.Run = &r.Run
	r.delays(CauseStaleRead)
}

func (e *LoopFound) during(r *running) {
	e.Run = &r.Run
	r.delays(CauseLoopDelay)
}

func (e *Deferred) during(r *running) {
	e.Run = &r.Run
	if e.Reason == DeferLoop {
		r.delays(CauseLoopDelay)
	}
}

func (e *ErrorReflected) during(r *running)   { e.Run = &r.Run }
func (e *TrackedUnwatched) during(r *running) { e.Run = &r.Run }
func (e *ProblemFound) during(r *running)     { e.Run = &r.Run }
func (e *AttemptFailed) during(r *running)    { e.Run = &r.Run }
func (e *KindServed) during(r *running)       { e.Run = &r.Run }
func (e *StoreMissed) during(r *running)      { e.Run = &r.Run }
func (e *HandlerCalled) during(r *running)    { e.Run = &r.Run }
