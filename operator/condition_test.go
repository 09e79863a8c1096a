// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// never is a policy that gives up at once.
var never = operator.ExponentialBackoffRetryPolicy(time.Nanosecond, -1)

// exhaustedOf describes the condition of a resource.
func exhaustedOf(r *fixture.Resource) string {
	condition := meta.FindStatusCondition(r.Status.Conditions, operator.ConditionRetriesExhausted)
	if condition == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %d: %s", condition.Status, condition.Reason, condition.ObservedGeneration, condition.Message)
}

const givenUp = "True CreatedFailed 1: failure of the test"

func TestCondition_OfHandlers(t *testing.T) {
	b := newBench(t, version("a", 1, 1))
	b.RetryPolicy = never
	b.errs = []error{errTest}
	_, err := b.see(b.stored())
	wantErr(t, err, reconcile.TerminalError(nil))
	equal(t, "condition", givenUp, exhaustedOf(b.stored()))

	b.handle(version("a", 2, 2000, func(r *fixture.Resource) { r.Status.Conditions = b.stored().Status.Conditions }))
	equal(t, "condition after a success", "", exhaustedOf(b.stored()))
}

func TestCondition_WriteFails(t *testing.T) {
	conflict := apierrs.NewConflict(resources, "test", nil)
	for name, tc := range map[string]struct {
		fail      error
		failures  int
		want      string
		is        error
		recreated bool
		deleted   bool
	}{
		"once":               {fail: conflict, failures: 1, want: givenUp},
		"always":             {fail: conflict, failures: 100, is: conflict},
		"failure":            {fail: errTest, failures: 100, is: errTest},
		"deleted meanwhile":  {deleted: true},
		"replaced meanwhile": {recreated: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, version("a", 1, 1))
			b.RetryPolicy = never
			b.errs = []error{fmt.Errorf("%w", errTest)}
			b.fail = func(string) error {
				if tc.failures--; tc.failures >= 0 {
					return tc.fail
				}
				return nil
			}
			seen := b.stored()
			if tc.deleted || tc.recreated {
				if err := b.server.Delete(t.Context(), b.stored()); err != nil {
					t.Fatal(err)
				}
			}
			if tc.recreated {
				if err := b.server.Create(
					t.Context(), version("b", 1, 0, func(r *fixture.Resource) { r.ResourceVersion = "" }),
				); err != nil {
					t.Fatal(err)
				}
			}
			_, err := b.see(seen)
			if tc.is != nil {
				// The condition must still be written, so this error is not terminal.
				wantErr(t, err, tc.is)
				equal(t, "terminal", false, errors.Is(err, reconcile.TerminalError(nil)))
			} else {
				wantErr(t, err, reconcile.TerminalError(nil))
			}
			if !tc.deleted {
				equal(t, "condition", tc.want, exhaustedOf(b.stored()))
			}
		})
	}
}

// Handlers outside of a root have no config to write with.
func TestCondition_WithoutConfig(t *testing.T) {
	b := newBench(t)
	b.RetryPolicy = never
	b.errs = []error{errTest}
	_, err := b.Reconcile(context.Background(), version("a", 1, 1))
	if err == nil || !strings.Contains(err.Error(), "config") {
		t.Errorf("error: %v, want the missing config", err)
	}
	equal(t, "events", 0, len(b.world.events))
}

func TestCondition_ReadFails(t *testing.T) {
	b := newBench(t, version("a", 1, 1))
	b.RetryPolicy = never
	b.errs = []error{errTest}
	broken := errors.New("cannot be read")
	b.config.APIReader = nil
	b.config.Client = interceptor.NewClient(b.server, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		},
	})
	_, err := b.see(b.stored())
	wantErr(t, err, broken)
}

// The condition is written again after a failed patch, without another call of the handler.
func TestCondition_IsWrittenLater(t *testing.T) {
	b := newBench(t, version("a", 1, 1))
	b.RetryPolicy = never
	b.errs = []error{errTest}
	failures := 1
	b.fail = func(string) error {
		if failures--; failures >= 0 {
			return errors.New("cannot be written")
		}
		return nil
	}
	if _, err := b.see(b.stored()); err == nil {
		t.Error("no error although the condition was not written")
	}
	b.want(t, "Created a 1")
	_, err := b.see(b.stored())
	wantErr(t, err, reconcilers.ErrRetryAfter)
	b.want(t)
	if exhaustedOf(b.stored()) == "" {
		t.Error("the condition was never written")
	}
}

// A condition that could not be removed is removed later.
func TestCondition_IsRemovedLater(t *testing.T) {
	b := newBench(t, version("a", 1, 1))
	b.RetryPolicy = never
	b.errs = []error{errTest}
	_, _ = b.see(b.stored())
	changed := version("a", 2, 2000, func(r *fixture.Resource) { r.Status.Conditions = b.stored().Status.Conditions })
	b.fail = func(string) error { return errTest }
	_, err := b.see(changed)
	wantErr(t, err, errTest)
	equal(t, "condition", givenUp, exhaustedOf(b.stored()))
	b.fail = nil
	b.handle(changed)
	b.want(t, "Created a 1", "Created a 2")
	equal(t, "condition", "", exhaustedOf(b.stored()))
}

// All handlers share the condition: it exists while any handler has given up.
func TestCondition_OfSeveralHandlers(t *testing.T) {
	for _, trees := range []bool{false, true} { // which write their status through the root
		t.Run(fmt.Sprint("with trees ", trees), func(t *testing.T) {
			failing, fine, kept := newBench(t, version("a", 1, 1)), newBench(t), newBench(t)
			failing.RetryPolicy = never
			failing.React = operator.ReactSpec
			failing.errs = []error{errTest}
			c := &operator.Controller[*fixture.Resource]{Config: failing.config, Handlers: []sub{
				failing.WithEdge, fine.WithEdge, operator.NewOpinionated[*fixture.Resource](
					testFinalizer, kept.reconciler(),
				),
			}}
			if trees {
				c.Handlers = append(c.Handlers, returns(0, nil))
			}
			for range 3 {
				_, _ = c.Reconcile(t.Context(), testRequest)
				equal(t, "condition", givenUp, exhaustedOf(failing.stored()))
			}
			changed := failing.stored()
			changed.Generation, changed.Spec.Fields["value"] = 2, "2"
			if err := failing.server.Update(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Reconcile(t.Context(), testRequest); err != nil {
				t.Fatal(err)
			}
			equal(t, "condition", "", exhaustedOf(failing.stored()))
		})
	}
}

func TestCondition_ForeignStatus(t *testing.T) {
	b := newBench(t, version("a", 1, 1))
	b.RetryPolicy = never
	b.errs = []error{errTest}
	c := &operator.Controller[*fixture.Resource]{
		Handlers: []sub{b.WithEdge, returns(0, nil)}, Config: b.config, SkipStatusUpdate: true,
	}
	_, err := c.Reconcile(t.Context(), testRequest)
	wantErr(t, err, reconcile.TerminalError(nil))
	equal(t, "writes", []string(nil), b.takeWrites())
}

// oddStatus has the status fields in embedded structs, which may be nil.
type oddStatus[S any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            S `json:"status"`
}

func (o *oddStatus[S]) DeepCopyObject() runtime.Object { copied := *o; return &copied }

type embedded struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// mapped is an object that is not a struct.
type mapped map[string]string

func TestStatus_OfAnyShape(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "test", UID: "a", ResourceVersion: "1", Generation: 1}
	for name, try := range map[string]func(context.Context) error{
		"no status": func(ctx context.Context) error { return give(ctx, &corev1.ConfigMap{ObjectMeta: meta}) },
		"nil":       func(ctx context.Context) error { return give(ctx, &oddStatus[*embedded]{ObjectMeta: meta}) },
		"embedded, nil": func(ctx context.Context) error {
			return give(ctx, &oddStatus[struct{ *embedded }]{ObjectMeta: meta})
		},
		"no struct": func(ctx context.Context) error { return give(ctx, &oddStatus[mapped]{ObjectMeta: meta}) },
		"other types": func(ctx context.Context) error {
			return give(ctx, &oddStatus[struct{ ObservedGeneration, Conditions string }]{ObjectMeta: meta})
		},
		"conditions of other types": func(ctx context.Context) error { return give(ctx, &corev1.Pod{ObjectMeta: meta}) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := try(newWorld(t).context()); err == nil || !strings.Contains(err.Error(), errTest.Error()) {
				t.Errorf("error: %v", err)
			}
		})
	}
}

// give calls a handler that gives up on an object.
func give[T client.Object](ctx context.Context, obj T) error {
	handler := operator.AsSubReconciler[T](&operator.TypedReconciler[T]{
		ReconcileFunc: func(context.Context, operator.TypedReconcileRequest[T]) (operator.ReconcileResult, error) {
			return operator.ReconcileResult{}, errTest
		},
	})
	handler.RetryPolicy = never
	handler.BelowController()
	_, err := handler.Reconcile(ctx, obj)
	return err
}
