// SPDX-License-Identifier: Apache-2.0

package observe

import "context"

// Listener receives events.
type Listener interface {
	// Observe is called for each event, while the reconcile waits for it. Calls for one run arrive in order, except if
	// steps run in several goroutines. Calls for several runs are concurrent. Observe must not change what an event
	// refers to.
	//
	// The context is the context of the reconcile. For [ReconcileStarted] and [StepStarted], the reconcile or the step
	// continues with the returned context, for example with a span of a trace. It must be derived from ctx. For other
	// events it is ignored.
	Observe(ctx context.Context, event Event) context.Context
}

// Func returns a listener that calls f for each event.
func Func(f func(ctx context.Context, event Event)) Listener { return &function{f} }

type function struct {
	f func(ctx context.Context, event Event)
}

func (f *function) Observe(ctx context.Context, event Event) context.Context {
	f.f(ctx, event)
	return ctx
}

// Nop is a listener that does nothing.
var Nop Listener = nop{}

type nop struct{}

func (nop) Observe(ctx context.Context, _ Event) context.Context { return ctx }

// tee passes each event to all listeners, in order.
type tee struct{ listeners []Listener }

func (t *tee) Observe(ctx context.Context, event Event) context.Context {
	for _, l := range t.listeners {
		ctx = l.Observe(ctx, event)
	}
	return ctx
}
