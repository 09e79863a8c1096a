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
	// Item is the item of the [Node].
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

// Observed is a context with an observer. It may be part of the state of the observer, to save an allocation, and must
// not be copied.
type Observed struct {
	context.Context //nolint:containedctx // it is a context
	observer        Observer
	place           *place
}

// Value returns what belongs to the context.
func (o *Observed) Value(key any) any {
	if _, ok := key.(observerKey); ok {
		return o
	}
	return o.Context.Value(key)
}

// inStep is the context of a step below an [Observed]. Each step has one, so it is small.
type inStep struct {
	context.Context //nolint:containedctx // it is a context
	outer           *Observed
	place           *place
}

func (s *inStep) Value(key any) any {
	if _, ok := key.(observerKey); ok {
		return s
	}
	return s.Context.Value(key)
}

// observedFrom returns the observed context that ctx belongs to, or nil, and the place of the current step.
func observedFrom(ctx context.Context) (*Observed, *place) {
	switch at := ctx.Value(observerKey{}).(type) {
	case *inStep:
		return at.outer, at.place
	case *Observed:
		return at, at.place
	}
	return nil, nil
}

// Observe makes o a context that attaches an observer to all steps that run with it, in addition to observers that are
// already attached to ctx.
func (o *Observed) Observe(ctx context.Context, observer Observer) {
	*o = Observed{Context: ctx, observer: observer, place: &root}
	if outer, at := observedFrom(ctx); outer != nil {
		o.observer, o.place = both{outer.observer, observer}, at
	}
}

// WithObserver returns a context that attaches an observer, see [Observed.Observe].
func WithObserver(ctx context.Context, observer Observer) context.Context {
	o := &Observed{}
	o.Observe(ctx, observer)
	return o
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
	if _, at := observedFrom(ctx); at != nil {
		return at.path
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

	trace := Of(ctx)
	before := trace.length()
	finished := false
	defer func() {
		// Do not recover the panic here, so that its value and its stack are preserved.
		if !finished {
			trace.addPanic(node.Name)
		}
	}()

	if outer, at := observedFrom(ctx); outer != nil {
		result, err = observe(ctx, outer, at.below(node), node.Item, resource, work)
	} else {
		result, err = work(ctx, resource)
	}
	finished = true
	trace.returned(node.Name, before, err)
	return result, err
}

func observe[T client.Object](
	ctx context.Context, outer *Observed, at *place, isItem bool, resource T,
	work func(ctx context.Context, resource T) (reconcile.Result, error),
) (result reconcile.Result, err error) {
	started := Started{Path: at.path, Item: isItem, Resource: resource}
	ctx = &inStep{Context: ctx, outer: outer, place: at}
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
