// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
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
	// Item reports whether the step is one of a varying number of equal steps, such as a child of a set or a turn of a
	// loop. Name is data then.
	Item bool
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
	// Item is that of the [Node].
	Item bool
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

// clockStart is the time to measure durations from: time.Since reads one clock, and time.Now two.
var clockStart = time.Now()

type observerKey struct{}

// observed is a context with an observer. It is one allocation, and context.WithValue would be two.
type observed struct {
	context.Context //nolint:containedctx // it is a context
	observer        Observer
	place           *place
}

func (o *observed) Value(key any) any {
	if _, ok := key.(observerKey); ok {
		return o
	}
	return o.Context.Value(key)
}

func observedFrom(ctx context.Context) *observed {
	o, _ := ctx.Value(observerKey{}).(*observed)
	return o
}

// WithObserver attaches an observer to all steps that run with the returned context, in addition to observers that are
// already attached.
func WithObserver(ctx context.Context, observer Observer) context.Context {
	at := &root
	if outer := observedFrom(ctx); outer != nil {
		observer, at = both{outer.observer, observer}, outer.place
	}
	return &observed{Context: ctx, observer: observer, place: at}
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
	return strings.Join(Names(ctx), ".")
}

// Names returns the names of the steps from the root to the current step of ctx. It is empty if no observer is
// attached. The caller must not change it.
func Names(ctx context.Context) []string {
	if o := observedFrom(ctx); o != nil {
		return o.place.path
	}
	return nil
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

	if outer := observedFrom(ctx); outer != nil {
		result, err = observe(ctx, outer, node, resource, work)
	} else {
		result, err = work(ctx, resource)
	}
	finished = true
	trace.returned(node.Name, before, err)
	return result, err
}

func observe[T client.Object](
	ctx context.Context, outer *observed, node Node, resource T,
	work func(ctx context.Context, resource T) (reconcile.Result, error),
) (result reconcile.Result, err error) {
	at := outer.place.below(node)
	started := Started{Path: at.path, Item: node.Item, Resource: resource}
	ctx = &observed{Context: ctx, observer: outer.observer, place: at}
	ctx = outer.observer.StepStarted(ctx, started)
	begin := time.Since(clockStart)
	panicked := true
	defer func() {
		outer.observer.StepFinished(ctx, Finished{
			Started: started, Duration: time.Since(clockStart) - begin, Result: result, Err: err, Panicked: panicked,
		})
	}()
	result, err = work(ctx, resource)
	panicked = false
	return result, err
}
