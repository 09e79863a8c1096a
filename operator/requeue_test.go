// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// failing provides a handler in each style that fails at the first call, and asks to be called again after a minute.
type failing struct {
	calls []string
	err   error
}

func (f *failing) called(ctx context.Context) error {
	edge := operator.EdgeFrom(ctx)
	f.calls = append(f.calls, fmt.Sprintf("%s, attempt %d", edge.Action, edge.Attempt))
	if len(f.calls) > 1 {
		return nil
	}
	return f.err
}

func (f *failing) Add(ctx context.Context, _ *fixture.Resource) error {
	if err := f.called(ctx); err != nil {
		return errors.Join(err, operator.RequeueAfter(time.Minute))
	}
	return nil
}

func (f *failing) Update(ctx context.Context, _, object *fixture.Resource) error {
	return f.Add(ctx, object)
}

func (f *failing) Delete(ctx context.Context, object *fixture.Resource) error {
	return f.Add(ctx, object)
}

func (f *failing) reconciler() operator.Reconciler {
	return &operator.TypedReconciler[*fixture.Resource]{
		ReconcileFunc: func(
			ctx context.Context, _ operator.TypedReconcileRequest[*fixture.Resource],
		) (operator.ReconcileResult, error) {
			if err := f.called(ctx); err != nil {
				return operator.ReconcileResult{RequeueAfter: time.Minute}, err
			}
			return operator.ReconcileResult{}, nil
		},
	}
}

func (f *failing) tree() reconcilers.SubReconciler[*fixture.Resource] {
	return &reconcilers.SyncReconciler[*fixture.Resource]{
		SyncWithResult: func(ctx context.Context, _ *fixture.Resource) (reconcilers.Result, error) {
			if err := f.called(ctx); err != nil {
				return reconcilers.Result{RequeueAfter: time.Minute}, err
			}
			return reconcilers.Result{}, nil
		},
	}
}

// RequeueAfter decides when a failed handler is called again. In a tree of reconcilers the error decides.
func TestRequeueAfterTogetherWithAnError(t *testing.T) {
	type withEdge = operator.WithEdge[*fixture.Resource]
	terminal := reconcile.TerminalError(errTest)
	for name, tc := range map[string]struct {
		handler func(f *failing) (sub, *withEdge)
		// policyDecides is for handlers that the policy retries after an hour.
		policyDecides bool
		err           error
	}{
		"request reconciler": {handler: func(f *failing) (sub, *withEdge) {
			leaf := operator.AsSubReconciler[*fixture.Resource](f.reconciler())
			return leaf, leaf
		}},
		"request reconciler, terminal error": {
			err: terminal, handler: func(f *failing) (sub, *withEdge) {
				leaf := operator.AsSubReconciler[*fixture.Resource](f.reconciler())
				return leaf, leaf
			},
		},
		"opinionated reconciler": {handler: func(f *failing) (sub, *withEdge) {
			opinionated := operator.NewOpinionated[*fixture.Resource](testFinalizer, f.reconciler())
			return opinionated, opinionated.Handler
		}},
		"watcher": {handler: func(f *failing) (sub, *withEdge) {
			watcher := operator.WatcherReconciler[*fixture.Resource](f)
			return watcher, watcher
		}},
		"opinionated watcher": {handler: func(f *failing) (sub, *withEdge) {
			opinionated := operator.OpinionatedWatcher[*fixture.Resource](testFinalizer, f)
			return opinionated, opinionated.Handler
		}},
		"tree": {policyDecides: true, handler: func(f *failing) (sub, *withEdge) {
			tree := &withEdge{Reconciler: f.tree(), OnlyChanges: true}
			return tree, tree
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &failing{err: errTest}
				if tc.err != nil {
					f.err = tc.err
				}
				stored := version("a", 1, 1)
				w := newWorld(t, stored)
				handler, edge := tc.handler(f)
				edge.BelowController()
				asked, reported := 0, 0
				edge.RetryPolicy = func(error, int) (bool, time.Duration) { asked++; return true, time.Hour }
				edge.OnError = func(_ context.Context, _ *fixture.Resource, err error) {
					if reported++; !errors.Is(err, errTest) {
						t.Errorf("reported error = %v", err)
					}
				}
				see := func() (reconcilers.Result, error) { return handler.Reconcile(w.context(), w.stored()) }

				result, err := see()
				wantResult, wantCalls, wantAsked := time.Minute, []string{"Created, attempt 0"}, 0
				if tc.policyDecides {
					wantResult, wantAsked = time.Hour, 1
				}
				equal(t, "result", reconcilers.Result{RequeueAfter: wantResult}, result)
				wantErr(t, err, reconcilers.ErrRetryAfter)
				if !strings.Contains(err.Error(), errTest.Error()) {
					t.Errorf("error = %v, want the failure", err)
				}
				equal(t, "times that the policy was asked", wantAsked, asked)
				equal(t, "reported errors", 1, reported)
				failed := slices.DeleteFunc(slices.Clone(w.events), func(e string) bool {
					return !strings.HasPrefix(e, "HandlerFailed: ")
				})
				equal(t, "events of the failure", 1, len(failed))

				time.Sleep(wantResult - time.Second)
				_, err = see()
				wantErr(t, err, reconcilers.ErrRetryAfter)
				equal(t, "calls before it is time", wantCalls, f.calls)
				time.Sleep(time.Second)
				_, err = see()
				wantErr(t, err)
				equal(t, "calls", append(wantCalls, fmt.Sprintf("Created, attempt %d", wantAsked)), f.calls)
			})
		})
	}
}
