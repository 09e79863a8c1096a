// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/memapi"
)

// Trace is what has happened in a run: numbers, and the states at each Settle. It does not judge; that is what oracles
// do.
type Trace struct {
	// Step is the index of the step of the users that is in progress.
	Step int
	// Changes counts the changes of the state. ForeignChanges are all but the effects of the process.
	Changes, ForeignChanges int
	// Authors are the reconciles that have made changes, in the order of the changes.
	Authors []Authored
	// Found is what reconciles have read or deleted, while that is recorded, or nil.
	Found Found
	// Mutations are the last writes of programs that webhooks have changed.
	Mutations []Mutation
	// Written describes the effects of the process.
	Written []string
	// Requests counts the requests of the process, weighted by their cost.
	Requests int
	// NoOps counts the writes of the process without an effect. Needless describes the ones that could have been avoided.
	NoOps    int
	Needless []string
	// Reconciles counts the reconciles that were started, and LastResult is the last one that has ended.
	Reconciles int
	LastResult *Reconcile

	// Settled are the states at each Settle, SettledAt the indexes of these steps, and SettledErrs the errors of the last
	// reconciles before them.
	Settled     []*state.Snapshot
	SettledAt   []int
	SettledErrs []error

	// MayFail is set during a Settle at which a reconcile may fail indefinitely: the error may be about the spec.
	MayFail bool
	// warnings are the generations of objects about which there was a warning last. Reconciles write it.
	warnings Warnings
	mu       sync.Mutex
}

// Warnings are the generations of objects about which there was a warning last.
type Warnings map[types.UID]int64

// About reports whether there was a warning about the present generation of an object.
func (w Warnings) About(obj client.Object) bool {
	generation, ok := w[obj.GetUID()]
	return ok && generation == obj.GetGeneration()
}

// Settle records the state at a Settle.
func (t *Trace) Settle(s *state.Snapshot) {
	t.Settled, t.SettledAt = append(t.Settled, s), append(t.SettledAt, t.Step)
	t.SettledErrs = append(t.SettledErrs, t.LastError())
}

// Warn records a warning about an object.
func (t *Trace) Warn(obj client.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.warnings == nil {
		t.warnings = Warnings{}
	}
	t.warnings[obj.GetUID()] = obj.GetGeneration()
}

// Warnings returns a copy of the warnings.
func (t *Trace) Warnings() Warnings {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.warnings)
}

// LastError returns the error of the last reconcile that has ended.
func (t *Trace) LastError() error {
	if t.LastResult == nil {
		return nil
	}
	return t.LastResult.Err
}

// Changed records a watch event, written by a process or by another client.
func (t *Trace) Changed(e memapi.Event, byProcess bool) {
	t.Changes++
	if !byProcess {
		t.ForeignChanges++
		return
	}
	t.Written = append(t.Written, inject.EventNames[e.Type]+" "+e.Kind.Kind+" "+phrase.Name(e.Key))
}

// Authored records the reconcile that has made the changes after a version, up to another one.
func (t *Trace) Authored(from, to int64, by *Reconcile) {
	if by != nil && from != to {
		t.Authors = append(t.Authors, Authored{From: from, To: to, By: &by.Author, At: time.Now()})
	}
}

// NoOp records a write without an effect. Only an update or a patch is needless, because the process has what it
// changes: it can compare it first. An apply declares what should be, and a dry run asks.
func (t *Trace) NoOp(c *Call) {
	t.NoOps++
	if (c.Act == "update" || c.Act == "patch") && !c.DryRun {
		t.Needless = append(t.Needless, c.Act+" "+c.Kind+" "+phrase.Name(c.Key))
	}
}

// CloudChanged records a change of the external system by the process.
func (t *Trace) CloudChanged(effect string) {
	t.Changes++
	t.Written = append(t.Written, effect)
}

// LastWritten describes the last effect of the process, or is empty.
func (t *Trace) LastWritten() string {
	if len(t.Written) == 0 {
		return ""
	}
	return t.Written[len(t.Written)-1]
}

// mostMutations limits how many mutations are kept.
const mostMutations = 20

// Mutated records that a webhook has changed a write.
func (t *Trace) Mutated(hook string, by Writer, r memapi.AdmissionRequest, result []byte) {
	if len(t.Mutations) == mostMutations {
		t.Mutations = t.Mutations[1:]
	}
	t.Mutations = append(t.Mutations, Mutation{
		Hook: hook, Writer: by, Kind: r.Kind.GroupVersionKind, Key: phrase.Name(r.Key), Stored: r.OldObject, Sent: r.Object,
		Mutated: result,
	})
}

// Read records what a call of a reconcile has read or deleted, while that is recorded.
func (t *Trace) Read(c *Call, by *Reconcile, err error) {
	switch {
	case t.Found == nil || by == nil || err != nil:
	case c.Into != nil, c.Act == "delete":
		writer := by.Writer()
		t.Found[writer] = append(t.Found[writer], ObjectOf{Kind: c.GVK, Key: c.Key})
	case c.Out != nil:
		writer := by.Writer()
		_ = meta.EachListItem(c.Out, func(item runtime.Object) error {
			if obj, ok := item.(client.Object); ok {
				t.Found[writer] = append(t.Found[writer], ObjectOf{Kind: c.GVK, Key: client.ObjectKeyFromObject(obj)})
			}
			return nil
		})
	}
}

// Author is a reconcile that makes changes.
type Author struct {
	// Controller and Key are the controller and the key of its request.
	Controller string
	Key        types.NamespacedName
	// Cause is the version of the last event that has led to the request, or that would have during the reconcile, or 0.
	Cause int64
}

// Authored are the changes after a version, up to another one, that a reconcile has made.
type Authored struct {
	From, To int64
	By       *Author
	At       time.Time
}

// Writer is who writes: a client and, if it is a program, the controller and the request of the reconcile.
type Writer struct {
	Client, Controller string
	Key                types.NamespacedName
}

// Writer returns the reconcile of a client as a writer.
func (a *Author) Writer(client string) Writer { return Writer{client, a.Controller, a.Key} }

// Found are the objects that the reconciles of each request have found to exist.
type Found map[Writer][]ObjectOf

// ObjectOf identifies an object.
type ObjectOf struct {
	Kind schema.GroupVersionKind
	Key  types.NamespacedName
}

// Mutation is a write of a program that a webhook has changed.
type Mutation struct {
	Hook   string
	Writer Writer
	Kind   schema.GroupVersionKind
	Key    string
	// Stored, Sent and Mutated are the object before the write, the one that the program has sent, and the one that the
	// webhook has made of it.
	Stored, Sent, Mutated []byte
}
