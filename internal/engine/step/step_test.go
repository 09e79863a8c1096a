// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/step"
)

type work = func(ctx context.Context, resource *corev1.ConfigMap) (reconcile.Result, error)

var (
	errTest  = errors.New("failure of the test")
	resource = &corev1.ConfigMap{}
	again    = reconcile.Result{RequeueAfter: time.Minute}
)

// nested runs a nested step for each name, and work in the last one.
func nested(names []string, do work) work {
	for _, name := range slices.Backward(names) {
		inner := do
		do = func(ctx context.Context, resource *corev1.ConfigMap) (reconcile.Result, error) {
			return step.Run(ctx, step.Node{Name: name}, resource, inner)
		}
	}
	return do
}

func newLog() (logr.Logger, *[]string) {
	lines := &[]string{}
	return funcr.New(func(prefix, args string) { *lines = append(*lines, prefix+" "+args) }, funcr.Options{}), lines
}

func TestRun_ReturnsWhatTheWorkReturns(t *testing.T) {
	for name, ctx := range map[string]context.Context{
		"alone":    context.Background(),
		"observed": step.WithObserver(context.Background(), &trace{}),
	} {
		t.Run(name, func(t *testing.T) {
			result, err := step.Run(
				ctx,
				step.Node{Name: "a"},
				resource,
				func(_ context.Context, got *corev1.ConfigMap) (reconcile.Result, error) {
					if got != resource {
						t.Error("the work was called with a different resource")
					}
					return again, errTest
				},
			)
			if result != again || !errors.Is(err, errTest) {
				t.Errorf("result %v, error %v", result, err)
			}
		})
	}
}

func TestRun_NamesTheLogger(t *testing.T) {
	log, lines := newLog()
	ctx := logr.NewContext(context.Background(), log)
	_, _ = step.Run(
		ctx, step.Node{Name: "a", Values: []any{"key", "value"}}, resource, nested([]string{"b", "c"}, say("inside")),
	)
	_, _ = step.Run(ctx, step.Node{Name: "d"}, resource, say("after"))
	want := []string{
		`a/b/c "level"=0 "msg"="inside" "key"="value"`,
		`d "level"=0 "msg"="after"`,
	}
	if diff := cmp.Diff(want, *lines); diff != "" {
		t.Errorf("unexpected lines (-want +got):\n%s", diff)
	}
}

func say(message string) work {
	return func(ctx context.Context, _ *corev1.ConfigMap) (reconcile.Result, error) {
		logr.FromContextOrDiscard(ctx).Info(message)
		return reconcile.Result{}, nil
	}
}

type observerValue struct{}

// trace is an observer that records its calls.
type trace struct {
	mu        sync.Mutex
	lines     []string
	durations []time.Duration
	finished  []step.Finished
}

func (o *trace) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, fmt.Sprintf(format, args...))
}

func (o *trace) StepStarted(ctx context.Context, started step.Started) context.Context {
	path := strings.Join(started.Path, ".")
	o.note("start %s", path)
	return context.WithValue(ctx, observerValue{}, path)
}

func (o *trace) StepFinished(ctx context.Context, finished step.Finished) {
	path := strings.Join(finished.Path, ".")
	if ctx.Value(observerValue{}) != path {
		o.note("StepFinished of %s received the context of %v", path, ctx.Value(observerValue{}))
	}
	o.note("finish %s: %v %v %v", path, finished.Result.RequeueAfter, finished.Err, finished.Panicked)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.durations = append(o.durations, finished.Duration)
	o.finished = append(o.finished, finished)
}

func TestObserver_OrderAndPaths(t *testing.T) {
	observer := &trace{}
	ctx := step.WithObserver(context.Background(), observer)
	_, _ = step.Run(
		ctx,
		step.Node{Name: "root"},
		resource,
		func(ctx context.Context, resource *corev1.ConfigMap) (reconcile.Result, error) {
			for _, name := range []string{"0", "1"} {
				_, _ = nested([]string{name, "leaf"}, func(ctx context.Context, _ *corev1.ConfigMap) (reconcile.Result, error) {
					if got, want := ctx.Value(observerValue{}), "root."+name+".leaf"; got != want {
						t.Errorf("work of %s received the context of %v", want, got)
					}
					return reconcile.Result{}, nil
				})(ctx, resource)
			}
			return again, errTest
		},
	)
	want := []string{
		"start root",
		"start root.0", "start root.0.leaf", "finish root.0.leaf: 0s <nil> false", "finish root.0: 0s <nil> false",
		"start root.1", "start root.1.leaf", "finish root.1.leaf: 0s <nil> false", "finish root.1: 0s <nil> false",
		"finish root: 1m0s failure of the test false",
	}
	if diff := cmp.Diff(want, observer.lines); diff != "" {
		t.Errorf("unexpected trace (-want +got):\n%s", diff)
	}
	for _, finished := range observer.finished {
		if finished.Resource != resource {
			t.Errorf("resource of %v is %v", finished.Path, finished.Resource)
		}
	}
}

func TestObserver_Durations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer := &trace{}
		ctx := step.WithObserver(context.Background(), observer)
		_, _ = step.Run(
			ctx,
			step.Node{Name: "outer"},
			resource,
			func(ctx context.Context, resource *corev1.ConfigMap) (reconcile.Result, error) {
				time.Sleep(time.Second)
				return step.Run(
					ctx,
					step.Node{Name: "inner"},
					resource,
					func(context.Context, *corev1.ConfigMap) (reconcile.Result, error) {
						time.Sleep(time.Minute)
						return reconcile.Result{}, nil
					},
				)
			},
		)
		if diff := cmp.Diff([]time.Duration{time.Minute, time.Minute + time.Second}, observer.durations); diff != "" {
			t.Errorf("unexpected durations (-want +got):\n%s", diff)
		}
	})
}

// panicking is the work of a step that panics.
func panicking(context.Context, *corev1.ConfigMap) (reconcile.Result, error) { panic(errTest) }

func wantPanic(t *testing.T, got any) {
	t.Helper()
	if err, ok := got.(error); !ok || !errors.Is(err, errTest) {
		t.Errorf("got panic value %v", got)
	}
}

func TestPanic(t *testing.T) {
	for name, observed := range map[string]bool{"alone": false, "observed": true} {
		t.Run(name, func(t *testing.T) {
			log, lines := newLog()
			observer := &trace{}
			ctx := logr.NewContext(context.Background(), log)
			if observed {
				ctx = step.WithObserver(ctx, observer)
			}
			func() {
				defer func() {
					wantPanic(t, recover())
					// The panicking function is still on the stack, because the panic was not recovered on the way.
					if stack := string(debug.Stack()); !strings.Contains(stack, "step_test.panicking") {
						t.Errorf("the place of the panic is not on the stack:\n%s", stack)
					}
				}()
				trace := &step.Trace{}
				ctx := step.Root(ctx, trace)
				defer trace.LogPanic(ctx)
				_, _ = nested([]string{"root", "1", "leaf"}, panicking)(ctx, resource)
			}()
			want := []string{` "level"=0 "msg"="reconciler panicked" "step"="root.1.leaf"`}
			if diff := cmp.Diff(want, *lines); diff != "" {
				t.Errorf("unexpected lines (-want +got):\n%s", diff)
			}
			wantTrace := []string(nil)
			if observed {
				wantTrace = []string{
					"start root", "start root.1", "start root.1.leaf",
					"finish root.1.leaf: 0s <nil> true", "finish root.1: 0s <nil> true", "finish root: 0s <nil> true",
				}
			}
			if diff := cmp.Diff(wantTrace, observer.lines); diff != "" {
				t.Errorf("unexpected trace (-want +got):\n%s", diff)
			}
		})
	}

	t.Run("without a root", func(t *testing.T) {
		defer func() {
			wantPanic(t, recover())
		}()
		_, _ = nested([]string{"a", "b"}, panicking)(context.Background(), resource)
	})
}

// recovering runs the inner work and recovers its panic.
func recovering(inner work) work {
	return func(ctx context.Context, resource *corev1.ConfigMap) (result reconcile.Result, err error) {
		defer func() { _ = recover() }()
		return inner(ctx, resource)
	}
}

func TestPanic_RecoveredOnTheWay(t *testing.T) {
	log, lines := newLog()
	func() {
		trace := &step.Trace{}
		ctx := step.Root(logr.NewContext(context.Background(), log), trace)
		defer trace.LogPanic(ctx)
		_, _ = step.Run(ctx, step.Node{Name: "root"}, resource, recovering(nested([]string{"a", "b"}, panicking)))
	}()
	if len(*lines) > 0 {
		t.Errorf("a recovered panic was logged: %v", *lines)
	}

	func() {
		defer func() { _ = recover() }()
		trace := &step.Trace{}
		ctx := step.Root(logr.NewContext(context.Background(), log), trace)
		defer trace.LogPanic(ctx)
		_, _ = step.Run(
			ctx,
			step.Node{Name: "root"},
			resource,
			func(ctx context.Context, resource *corev1.ConfigMap) (reconcile.Result, error) {
				_, _ = step.Run(ctx, step.Node{Name: "careful"}, resource, recovering(nested([]string{"a", "b"}, panicking)))
				return step.Run(ctx, step.Node{Name: "careless"}, resource, panicking)
			},
		)
	}()
	want := []string{` "level"=0 "msg"="reconciler panicked" "step"="root.careless"`}
	if diff := cmp.Diff(want, *lines); diff != "" {
		t.Errorf("unexpected lines (-want +got):\n%s", diff)
	}
}

func TestRun_Allocations(t *testing.T) {
	nothing := func(context.Context, *corev1.ConfigMap) (reconcile.Result, error) { return reconcile.Result{}, nil }
	root := step.Root(context.Background(), &step.Trace{})
	for name, ctx := range map[string]context.Context{
		"no logger":      context.Background(),
		"below a root":   root,
		"discard logger": logr.NewContext(context.Background(), logr.Discard()),
	} {
		t.Run(name, func(t *testing.T) {
			allocations := testing.AllocsPerRun(100, func() {
				_, _ = step.Run(ctx, step.Node{Name: "a"}, resource, nothing)
			})
			if allocations != 0 {
				t.Errorf("got %v allocations per step, want 0", allocations)
			}
		})
	}
}

func TestRun_ConcurrentRequests(t *testing.T) {
	observer := &trace{}
	shared := step.WithObserver(logr.NewContext(context.Background(), logr.Discard()), observer)
	const requests = 20
	var done sync.WaitGroup
	for i := range requests {
		done.Go(func() {
			defer func() { _ = recover() }()
			trace := &step.Trace{}
			ctx := step.Root(shared, trace)
			defer trace.LogPanic(ctx)
			last := panicking
			if i%2 == 0 {
				last = say("fine")
			}
			_, _ = nested([]string{"root", fmt.Sprint(i)}, last)(ctx, resource)
		})
	}
	done.Wait()
	counts := map[string]int{}
	for _, line := range observer.lines {
		counts[line]++
	}
	for i := range requests {
		finish := fmt.Sprintf("finish root.%d: 0s <nil> %v", i, i%2 != 0)
		if counts[fmt.Sprintf("start root.%d", i)] != 1 || counts[finish] != 1 {
			t.Errorf("request %d was not observed once: %v", i, counts)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	nothing := func(context.Context, *corev1.ConfigMap) (reconcile.Result, error) { return reconcile.Result{}, nil }
	for _, bc := range []struct {
		name string
		ctx  context.Context
	}{
		{"NoObserver", context.Background()},
		{"Observer", step.WithObserver(context.Background(), silent{})},
		{"Logger", logr.NewContext(context.Background(), funcr.New(func(_, _ string) {}, funcr.Options{}))},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			ctx := step.Root(bc.ctx, &step.Trace{})
			for b.Loop() {
				_, _ = step.Run(ctx, step.Node{Name: "a"}, resource, nothing)
			}
		})
	}
}

// silent is an observer that does nothing.
type silent struct{}

func (silent) StepStarted(ctx context.Context, _ step.Started) context.Context { return ctx }
func (silent) StepFinished(context.Context, step.Finished)                     {}
