// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Node describes a step before it runs.
type Node struct {
	// Name is the name of the reconciler, or its position within a list of reconcilers.
	Name string
	// Values are key/value pairs for the step's logger.
	Values []any
}

// Observer is called for every step below the context that it is attached to. Calls arrive in order within one
// reconcile request; an observer attached to several requests must be safe for concurrent use.
type Observer interface {
	// StepStarted is called before the step does its work. The step works with the returned context.
	StepStarted(ctx context.Context, started Started) context.Context
	// StepFinished is called after the step has done its work, even if it panics.
	StepFinished(ctx context.Context, finished Finished)
}

// Started describes the start of a step.
type Started struct {
	// Path is the names of all steps from the root to this one.
	Path []string
	// Resource is the object that the step was called with.
	Resource client.Object
}

// Finished describes the end of a step.
type Finished struct {
	Started
	// Duration is the duration of the step, including the steps below it.
	Duration time.Duration
	// Result and Err are the results of the step. Both are zero if it panicked.
	Result reconcile.Result
	Err    error
	// Panicked reports whether the step panicked.
	Panicked bool
}

type observerKey struct{}

// observation is the observer of a context and the path of its step.
type observation struct {
	observer Observer
	path     []string
}

// WithObserver attaches an observer to all steps that run with the returned context, in addition to observers that are
// already attached.
func WithObserver(ctx context.Context, observer Observer) context.Context {
	observed, ok := ctx.Value(observerKey{}).(observation)
	if ok {
		observer = both{observed.observer, observer}
	}
	return context.WithValue(ctx, observerKey{}, observation{observer: observer, path: observed.path})
}

// both combines two observers.
type both struct{ first, second Observer }

func (b both) StepStarted(ctx context.Context, started Started) context.Context {
	return b.second.StepStarted(b.first.StepStarted(ctx, started), started)
}

func (b both) StepFinished(ctx context.Context, finished Finished) {
	b.second.StepFinished(ctx, finished)
	b.first.StepFinished(ctx, finished)
}

// Path returns the names of the steps from the root to the current step of ctx, joined with dots. It returns "" if no
// observer is attached.
func Path(ctx context.Context) string {
	observed, _ := ctx.Value(observerKey{}).(observation)
	return strings.Join(observed.path, ".")
}

// Run calls work as the step that node describes and returns its results.
func Run[T client.Object](
	ctx context.Context, node Node, resource T, work func(ctx context.Context, resource T) (reconcile.Result, error),
) (result reconcile.Result, err error) {
	if log, lerr := logr.FromContext(ctx); lerr == nil && log.GetSink() != nil {
		log = log.WithName(node.Name)
		if len(node.Values) > 0 {
			log = log.WithValues(node.Values...)
		}
		ctx = logr.NewContext(ctx, log)
	}

	trace, _ := ctx.Value(traceKey{}).(*Trace)
	before := trace.length()
	finished := false
	defer func() {
		// Do not recover the panic here, so that its value and its stack are preserved.
		if !finished {
			trace.addPanic(node.Name)
		}
	}()

	if observed, ok := ctx.Value(observerKey{}).(observation); ok {
		result, err = observe(ctx, observed, node, resource, work)
	} else {
		result, err = work(ctx, resource)
	}
	finished = true
	trace.returned(node.Name, before, err)
	return result, err
}

func observe[T client.Object](
	ctx context.Context, observed observation, node Node, resource T,
	work func(ctx context.Context, resource T) (reconcile.Result, error),
) (result reconcile.Result, err error) {
	started := Started{Path: append(slices.Clip(observed.path), node.Name), Resource: resource}
	ctx = context.WithValue(ctx, observerKey{}, observation{observer: observed.observer, path: started.Path})
	ctx = observed.observer.StepStarted(ctx, started)
	begin := time.Now()
	panicked := true
	defer func() {
		observed.observer.StepFinished(ctx, Finished{
			Started: started, Duration: time.Since(begin), Result: result, Err: err, Panicked: panicked,
		})
	}()
	result, err = work(ctx, resource)
	panicked = false
	return result, err
}
