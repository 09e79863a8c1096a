// SPDX-License-Identifier: Apache-2.0

package world

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/inject"
)

// RequestOf is a request of a controller of a program, whose name is empty for the reconciler of New.
type RequestOf struct {
	reconcile.Request

	// Program is the index of the program.
	Program    int
	Controller string
}

// Reconcile is a reconcile, and how it has ended.
type Reconcile struct {
	RequestOf

	Number int
	Name   string
	// Client is the client of its process.
	Client string
	// Changes is the number of changes before its start.
	Changes int
	// Author is what findings about its changes need.
	Author Author

	// The following fields are set at its end.
	Returned bool
	Result   reconcile.Result
	Err      error
	Panicked any
	Stack    string
	// Refused is set if a request has failed with a temporary error.
	Refused bool
	// Failed are the faults that its requests received.
	Failed []inject.Fault
}

// Writer returns a reconcile as a writer.
func (a *Reconcile) Writer() Writer { return a.Author.Writer(a.Client) }

// IsRetried reports whether the request of a reconcile that has ended is queued again.
func (a *Reconcile) IsRetried() bool {
	return a.Err != nil && !IsTerminal(a.Err) || a.Panicked != nil || a.Result.RequeueAfter > 0 ||
		a.Result.Requeue //nolint:staticcheck // reconcilers still ask for it
}

// Call is a call of a process.
type Call struct {
	inject.Site

	// Who makes it: the name of a reconcile.
	Who string
	// Cached is set for reads from a cache.
	Cached bool
	// Obj is the object that is written, or nil for reads.
	Obj client.Object
	// GVK is the kind of the object.
	GVK schema.GroupVersionKind
	// Conditional is set for a delete with a precondition.
	Conditional bool
	// DryRun is set for an update or a patch that is not stored.
	DryRun bool
	// Manager is the field manager of a create, or empty for the field manager of the client.
	Manager string
	// Out is the list that is read, and into the object that is read.
	Out  runtime.Object
	Into client.Object
	// Outside is set for a call to an external system, and effect if that may change something.
	Outside, Effect bool
}

// IsTerminal reports whether a reconcile is not repeated after an error.
func IsTerminal(err error) bool { return errors.Is(err, reconcile.TerminalError(nil)) }
