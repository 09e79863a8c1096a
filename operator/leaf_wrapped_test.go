// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// wrapped is a Reconciler around another one.
type wrapped struct {
	operator.Reconciler
	setUp int
}

func (w *wrapped) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	w.setUp++
	return nil
}

func TestAsReconciler_Wrapped(t *testing.T) {
	tree := operator.AsReconciler(reconcilers.Sequence[*fixture.Resource]{&reconcilers.SyncReconciler[*fixture.Resource]{
		SyncWithResult: func(_ context.Context, r *fixture.Resource) (reconcilers.Result, error) {
			r.Spec.Fields["value"] = "changed"
			return reconcilers.Result{RequeueAfter: time.Minute}, nil
		},
	}})
	w := &wrapped{Reconciler: tree}
	handler := operator.AsSubReconciler[*fixture.Resource](w)
	given := version("a", 1, 1)
	result, err := handler.Reconcile(newWorld(t).context(), given)
	wantErr(t, err)
	equal(t, "result", reconcilers.Result{RequeueAfter: time.Minute}, result)
	equal(t, "resource", version("a", 1, 1), given) // the tree has seen a copy

	world := newWorld(t)
	c := &operator.Controller[*fixture.Resource]{Handlers: []sub{handler}, Config: world.config}
	wantErr(t, c.SetupWithManager(t.Context(), newManager(t, world)))
	equal(t, "set-ups", 1, w.setUp)

	_, err = tree.Reconcile(t.Context(), operator.ReconcileRequest{Object: &corev1.ConfigMap{}})
	wantText(t, "cannot handle an object of type *v1.ConfigMap, only of type *fixture.Resource", err)
}

func TestAsSubReconciler_State(t *testing.T) {
	var states []map[string]any
	handler := operator.AsSubReconciler[*fixture.Resource](&operator.TypedReconciler[*fixture.Resource]{
		ReconcileFunc: func(
			_ context.Context, req operator.TypedReconcileRequest[*fixture.Resource],
		) (operator.ReconcileResult, error) {
			states = append(states, req.State)
			switch len(states) {
			case 1:
				return operator.ReconcileResult{State: map[string]any{"step": 1}}, errTest
			case 2:
				return operator.ReconcileResult{}, errTest // nil leaves it as it is
			case 3:
				return operator.ReconcileResult{State: map[string]any{}}, errTest // and this empties it
			}
			return operator.ReconcileResult{State: map[string]any{"for": "no attempt"}}, nil
		},
	})
	ctx := newWorld(t).context()
	for range 4 {
		_, _ = handler.Reconcile(ctx, version("a", 1, 1))
	}
	_, err := handler.Reconcile(ctx, version("a", 2, 2))
	wantErr(t, err)
	equal(t, "states", []map[string]any{nil, {"step": 1}, {"step": 1}, {}, nil}, states)
}

// impostor is an object whose copies have another type.
type impostor struct{ fixture.Resource }

func (i *impostor) DeepCopyObject() runtime.Object { return i.DeepCopy() }

func TestLeaf_CopyOfAnotherType(t *testing.T) {
	handler := operator.WatcherReconciler(watcher[*impostor]{new([]string)})
	handler.PreviousState = operator.PreviousNone
	_, err := handler.Reconcile(newWorld(t).context(), &impostor{*version("a", 1, 1)})
	wantText(t, "a copy of *operator_test.impostor is not of the same type", err)
}

// If the handler writes the status itself, one request is saved.
func TestOpinionated_HandlerThatWritesTheStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		write bool
		want  []string
	}{
		"writes": {
			true, []string{`patch {"metadata":{"finalizers":["example.com/test"],"resourceVersion":"1"}}`, "update status"},
		},
		"only seems to": {
			false,
			[]string{
				`patch {"metadata":{"finalizers":["example.com/test"],"resourceVersion":"1"}}`,
				`patch status {"metadata":{"uid":"a"},"status":{"observedGeneration":1}}`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, version("a", 1, 1))
			leaf := &operator.TypedReconciler[*fixture.Resource]{
				ReconcileFunc: func(
					ctx context.Context, req operator.TypedReconcileRequest[*fixture.Resource],
				) (operator.ReconcileResult, error) {
					req.Object.Status.ObservedGeneration = req.Object.Generation
					if !tc.write {
						return operator.ReconcileResult{}, nil
					}
					return operator.ReconcileResult{}, w.config.Status().Update(ctx, req.Object)
				},
			}
			handler := operator.NewOpinionated[*fixture.Resource](testFinalizer, leaf)
			c := &operator.Controller[*fixture.Resource]{Handlers: []sub{handler}, Config: w.config}
			_, err := c.Reconcile(t.Context(), testRequest)
			wantErr(t, err)
			equal(t, "writes", tc.want, w.takeWrites())
			equal(t, "observed generation", int64(1), w.stored().Status.ObservedGeneration)
		})
	}
}
