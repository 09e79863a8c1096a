// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
)

// TraceKey is the key of a *[Trace] in a context.
type TraceKey struct{}

// Trace holds what the root of a request needs to know about its steps: the path of a panic, and the origins of errors.
// Errors are never changed, because callers compare them. The zero value is ready to use. A request without a panic or
// an error allocates nothing.
//
// Steps may run in several goroutines. If their errors cannot be attributed to a step, the trace names the step that
// started them.
type Trace struct {
	// Ignore reports whether an error is not a failure. Optional.
	Ignore func(err error) bool
	// Explain returns why a step halted with an error that is not a failure, or "". Optional.
	Explain func(err error) string

	panicked atomic.Pointer[[]string]
	errors   atomic.Int64

	// noted is the length of failures, so that a step without a failure takes no lock.
	noted    atomic.Int64
	mu       sync.Mutex
	failures []*failure
}

// Root returns a context for the steps of the request of this trace.
func Root(ctx context.Context, trace *Trace) context.Context {
	return context.WithValue(ctx, TraceKey{}, trace)
}

// Of returns the trace of the request, or nil.
func Of(ctx context.Context) *Trace {
	t, _ := ctx.Value(TraceKey{}).(*Trace)
	return t
}

// Errors returns how many times a step has returned an error so far, including errors that a step around it handled.
func (t *Trace) Errors() int64 { return t.errors.Load() }

// Ignores reports whether an error of a step is not a failure, see [Trace.Ignore].
func Ignores(ctx context.Context, err error) bool {
	t := Of(ctx)
	return t != nil && t.ignores(err)
}

// Explain returns why a step halted with an error, see [Trace.Explain].
func Explain(ctx context.Context, err error) string {
	if t := Of(ctx); t != nil && t.Explain != nil {
		return t.Explain(err)
	}
	return ""
}

// LogPanic must be deferred by the root reconciler. If a panic passes, it logs and returns the path of the step that
// panicked.
func (t *Trace) LogPanic(ctx context.Context) (path string, panicked bool) {
	noted := t.panicked.Load()
	if noted == nil {
		return "", false
	}
	path = joined(*noted)
	logr.FromContextOrDiscard(ctx).Info("reconciler panicked", "step", path)
	return path, true
}

// joined returns the path of names that were collected from the innermost step to the root.
func joined(names []string) string {
	names = slices.Clone(names)
	slices.Reverse(names)
	return strings.Join(names, ".")
}

func (t *Trace) addPanic(name string) {
	if t == nil {
		return
	}
	names := []string{}
	if noted := t.panicked.Load(); noted != nil {
		names = slices.Clip(*noted)
	}
	names = append(names, name)
	t.panicked.Store(&names)
}

// returned records that a step returned err. before is the length of the trace when the step started.
func (t *Trace) returned(name string, before int, err error) {
	if t == nil {
		return
	}
	if t.panicked.Load() != nil {
		// A reconciler below has recovered the panic.
		t.panicked.Store(nil)
	}
	if err != nil {
		t.errors.Add(1)
	}
	t.passes(name, before, err)
}
