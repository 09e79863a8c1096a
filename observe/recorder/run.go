// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
)

// Run is a reconcile.
type Run struct {
	// ID is the reconcile ID in log lines.
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
	// Duration is 0 while the reconcile runs.
	Duration time.Duration `json:"durationNs"`
	Outcome  Outcome       `json:"outcome"`
	// Causes are the reasons why the reconcile ran, the oldest first.
	Causes        []Cause `json:"causes"`
	OmittedCauses int     `json:"omittedCauses,omitempty"`
	// Error is the error of the reconcile, and Failures are the errors that make it up.
	Error    string    `json:"error,omitempty"`
	Failures []Failure `json:"failures,omitempty"`
	// Steps are the steps in the order in which they started. A step follows the step that contains it.
	Steps []Step `json:"steps,omitempty"`
	// Calls are the calls outside of steps.
	Calls []Call `json:"calls,omitempty"`
	// CachedReads is the number of reads from caches outside of steps. Only those that fail are among the calls.
	CachedReads int `json:"cachedReads,omitempty"`
	// Writes is the number of calls that changed an object.
	Writes int `json:"writes"`
	// Omitted is the number of steps and calls that were not kept, because there were more than 200 of them.
	Omitted int   `json:"omitted,omitempty"`
	Loop    *Loop `json:"loop,omitempty"`
	Next    *Next `json:"next,omitempty"`
	// NoOpsBefore is the number of reconciles without a write and without an error since the run before in the list.
	NoOpsBefore int `json:"noOpsBefore,omitempty"`
}

// OpenStep returns the path of the innermost step that has not finished, with dots, or "".
func (r *Run) OpenStep() string {
	path := []string{}
	for _, s := range r.Steps {
		if s.Outcome == "" && len(s.Path) > len(path) {
			path = s.Path
		}
	}
	return strings.Join(path, ".")
}

// Outcome is how a reconcile ended.
type Outcome string

// The outcomes of reconciles.
const (
	// Changed is the outcome of a reconcile that wrote, without an error.
	Changed Outcome = "Changed"
	// NoOp is the outcome of a reconcile without a write and without an error.
	NoOp Outcome = "NoOp"
	// Failed is the outcome with an error, or with a write that the API server refused for another reason than a conflict
	// or a missing or an existing object: reconcilers often put such an error into a condition and return none.
	Failed Outcome = "Failed"
	// Panicked is the outcome of a reconcile that panicked.
	Panicked Outcome = "Panicked"
	// Running means that the reconcile has not ended.
	Running Outcome = "Running"
)

// IsFailure reports whether the outcome is [Failed] or [Panicked].
func (o Outcome) IsFailure() bool { return o == Failed || o == Panicked }

// Ref identifies an object.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

func refOf(kind schema.GroupVersionKind, object types.NamespacedName) Ref {
	return Ref{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name,
	}
}

// String returns the kind and the name, for example "ConfigMap default/a".
func (r Ref) String() string { return strings.TrimSpace(r.Kind + " " + r.Key()) }

// Key returns the name, with the namespace before it if there is one, for example "default/a".
func (r Ref) Key() string {
	if r.Namespace == "" {
		return r.Name
	}
	return strings.TrimSuffix(r.Namespace+"/"+r.Name, "/")
}

// Cause is a reason why a reconcile ran. See [observe.Cause].
type Cause struct {
	Type    observe.CauseType `json:"type"`
	At      time.Time         `json:"at,omitzero"`
	Object  Ref               `json:"object,omitzero"`
	Verb    observe.Verb      `json:"verb,omitempty"`
	Count   int               `json:"count,omitempty"`
	After   time.Duration     `json:"afterNs,omitempty"`
	Attempt int               `json:"attempt,omitempty"`
	Error   string            `json:"error,omitempty"`
	// By is the field manager that wrote the object last.
	By string `json:"by,omitempty"`
	// Changes are the changed fields of an update. They are not computed for all of many reconciles without a write.
	Changes []observe.Change `json:"changes,omitempty"`
}

// Step is a step of a reconcile.
type Step struct {
	// Path is the names of the steps from the root to this one.
	Path []string `json:"path"`
	// Duration is 0 for a step that has not finished.
	Duration time.Duration `json:"durationNs"`
	// Outcome is empty for a step that has not finished.
	Outcome observe.Outcome `json:"outcome,omitempty"`
	// Error is the error of the step. It is empty if a step below has returned the same error.
	Error string `json:"error,omitempty"`
	// CachedReads is the number of reads from caches. Only those that fail are among the calls.
	CachedReads int    `json:"cachedReads,omitempty"`
	Calls       []Call `json:"calls,omitempty"`
}

// Name returns the last element of the path.
func (s Step) Name() string {
	if len(s.Path) == 0 {
		return ""
	}
	return s.Path[len(s.Path)-1]
}

// Call is a call of a client. See [observe.Call].
type Call struct {
	Verb        string `json:"verb"`
	Apply       bool   `json:"apply,omitempty"`
	DryRun      bool   `json:"dryRun,omitempty"`
	Object      Ref    `json:"object"`
	Subresource string `json:"subresource,omitempty"`
	Before      string `json:"before,omitempty"`
	After       string `json:"after,omitempty"`
	NoOp        bool   `json:"noOp,omitempty"`
	// Dropped are the fields that the API server has not stored.
	Dropped []string `json:"dropped,omitempty"`
	Items   int      `json:"items,omitempty"`
	Cached  bool     `json:"cached,omitempty"`
	Error   string   `json:"error,omitempty"`
	// Reason is the reason of the API server for the error, for example NotFound, or empty.
	Reason   metav1.StatusReason `json:"reason,omitempty"`
	Duration time.Duration       `json:"durationNs"`
	Changes  []observe.Change    `json:"changes,omitempty"`
}

// Failure is an error of a step. See [observe.Failure].
type Failure struct {
	Step   string `json:"step"`
	Object string `json:"object,omitempty"`
	Error  string `json:"error"`
}

func failureOf(f observe.Failure) Failure { return Failure{f.Step, f.Object, textOf(f.Err)} }

// Loop describes reconciles that repeat. See [observe.LoopFound].
type Loop struct {
	Reconciles int           `json:"reconciles"`
	Within     time.Duration `json:"withinNs"`
	Repeats    []string      `json:"repeats,omitempty"`
	// Last is the start of the last reconcile that is part of the loop, or that was delayed because of it, and Delay is
	// its delay. A [Run] does not have them.
	Last  time.Time     `json:"last,omitzero"`
	Delay time.Duration `json:"delayNs,omitempty"`
}

// Next is when the object is reconciled next without an event.
type Next struct {
	// At is the time of the requested requeue. It is zero if the reconcile is retried with back-off.
	At time.Time `json:"at,omitzero"`
	// Retry reports whether the reconcile is retried with back-off.
	Retry bool `json:"retry,omitempty"`
}
