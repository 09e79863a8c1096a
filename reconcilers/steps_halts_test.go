// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

const statusWrittenDefault = "update Resource/status default/test"

// runFor reconciles like a controller for some time, and returns the number of reconciles.
func (s *stage) runFor(limit time.Duration) (reconciles int) {
	s.t.Helper()
	for end := time.Now().Add(limit); ; reconciles++ {
		result, err := s.root.Reconcile(s.ctx, testRequest)
		wantErr(s.t, nil, err)
		if result.Requeue { //nolint:staticcheck // back-off
			s.t.Fatal("the request is retried with the back-off of the controller")
		}
		if result.RequeueAfter == 0 || time.Now().Add(result.RequeueAfter).After(end) {
			return reconciles + 1
		}
		time.Sleep(result.RequeueAfter)
	}
}

// How often does a step run that halts, and does what follows the Steps run? A halt is how a step waits.
func TestSteps_WhatHappensWhenAStepHalts(t *testing.T) {
	ctx := calledby.Controller()
	none, halt := reconcilers.Result{}, reconcilers.ErrHaltSubReconcilers
	// waitsForChild is the recipe for a child to be ready.
	waitsForChild := newStep("db").Reconciler.(*childReconciler)
	waitsForChild.ReflectChildStatusOnParentWithError = func(
		_ context.Context, _ *fixture.Resource, child *corev1.ConfigMap, _ error,
	) error {
		if child.Data["ready"] != child.Data["value"] {
			return halt
		}
		return nil
	}
	undecided := newStep("db").Reconciler.(*childReconciler)
	undecided.DesiredChild = func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) { return nil, halt }
	for name, tc := range map[string]struct {
		step    subReconciler
		within  time.Duration
		want    int
		message string
	}{
		"for something else":       {returning(none, halt), 5 * time.Second, 4, "has not finished"},
		"for something else, long": {returning(none, halt), time.Hour, 21, "has not finished"},
		"durably":                  {returning(none, reconcilers.ErrDurable), 5 * time.Second, 4, "has not finished"},
		"until a time": {
			returning(reconcilers.Result{RequeueAfter: time.Minute}, halt), time.Hour, 61, "has not finished",
		},
		"until a child is ready":    {waitsForChild, time.Hour, 1, "ConfigMap default/db: has an old value"},
		"before a child is decided": {undecided, 5 * time.Second, 4, "ConfigMap was not reconciled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				follower := newCalls()
				r := &steps{Steps: []stepOf{
					{Name: "db", Reconciler: tc.step, Ready: rollout}, {Name: "app", DependsOn: []string{"db"}, Reconciler: never(t)},
				}}
				s := newStage(t, sequence{r, follower})
				s.ctx = ctx
				since := time.Now().UTC().Format(time.RFC3339)
				equal(t, "reconciles", tc.want, s.runFor(tc.within))
				equal(t, "calls of the reconciler that follows", tc.want, follower.count)
				s.condition("Ready", "Unknown WaitingForStep: step db: "+tc.message+", since "+since)
				equal(t, "status writes", 1, s.Count(statusWrittenDefault))
			})
		})
	}
}

// Does a halt keep the finalizer of the Steps, and the order of the removal?
func TestSteps_DoesAHaltHoldTheRemoval(t *testing.T) {
	for name, root := range map[string]func(*steps) subReconciler{
		"own finalizer": func(r *steps) subReconciler {
			r.Finalizer = "test-finalizer"
			return r
		},
		"enclosing finalizer": func(r *steps) subReconciler {
			return &withFinalizer{Finalizer: "test-finalizer", Reconciler: r}
		},
		"nested": func(r *steps) subReconciler {
			r.Condition = "Inner"
			return &steps{Finalizer: "test-finalizer", Steps: []stepOf{{Name: "inner", Reconciler: r}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := stepOf{Name: "app", DependsOn: []string{"db"}, Reconciler: returning(
				reconcilers.Result{}, reconcilers.ErrHaltSubReconcilers,
			)}
			w := newWorld(t, newResource(finalizer("test-finalizer"), terminating), newConfigMap("db"))
			r := &resourceReconciler{Config: w.Config, Reconciler: root(&steps{Steps: []stepOf{newStep("db"), app}})}
			for range 2 {
				result, err := r.Reconcile(calledby.Controller(), testRequest)
				wantErr(t, nil, err)
				equal(t, "finalizers", []string{"test-finalizer"}, stored(w, newResource()).Finalizers)
				equal(t, "is requeued", true, result.Requeue || result.RequeueAfter > 0) //nolint:staticcheck // back-off
			}
			equal(t, "deletions", 0, w.Count("delete"))
		})
	}
}

// What does the condition say about a step that fails? The cause, and the time does not restart when the cause changes.
func TestSteps_IsTheCauseInTheCondition(t *testing.T) {
	ctx := calledby.Controller()
	quiet := func(text string) error { return fmt.Errorf("%s: %w", text, reconcilers.ErrQuiet) }
	for name, tc := range map[string]struct {
		err, want string
		given     error
	}{
		"failure": {given: errTest, want: ": failure of the test"},
		"quiet":   {given: quiet("the provider is slow"), want: ": the provider is slow"},
		"joined":  {given: errors.Join(errTest, reconcilers.ErrQuiet, reconcilers.ErrSkipStatusUpdate), want: ""},
		"joined, stored": {
			given: errors.Join(errTest, errors.New("other"), reconcilers.ErrRetryAfter), want: ": failure of the test; other",
		},
		"nothing known": {given: reconcilers.ErrRetryAfter, want: ""},
		"halt":          {given: fmt.Errorf("no zone: %w", reconcilers.ErrHaltSubReconcilers), want: ": no zone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &steps{Steps: []stepOf{{
					Name: "dns", Condition: "DNSReady", ProgressDeadline: 10 * time.Minute,
					Reconciler: &syncReconciler{Sync: func(context.Context, *fixture.Resource) error { return tc.given }},
				}}}
				s := newStage(t, r)
				s.ctx = ctx
				reconcile := func() { _, _ = s.root.Reconcile(s.ctx, testRequest) }
				since := time.Now().UTC().Format(time.RFC3339)
				reconcile()
				if errors.Is(tc.given, reconcilers.ErrSkipStatusUpdate) {
					s.condition("DNSReady", "none")
					return
				}
				s.condition("Ready", "Unknown WaitingForStep: step dns: has not finished, since "+since+tc.want)
				s.condition("DNSReady", "Unknown WaitingForStep: has not finished"+tc.want)
				time.Sleep(10 * time.Minute)
				tc.given = fmt.Errorf("another cause: %w", tc.given)
				reconcile()
				contains(t, stored(s.world, newResource()).Status.GetCondition("Ready").Message,
					"step dns: has not finished, since "+since+", longer than 10m0s: another cause")
			})
		})
	}
}

// Does a back-off write the status each time because the time that is left changes?
func TestSteps_DoesADeferredStepWriteTheStatus(t *testing.T) {
	ctx, failing := calledby.Controller(), returning(reconcilers.Result{}, errTest)
	for name, below := range map[string]subReconciler{
		"Retry":              &retry{InitialDelay: time.Hour, Reconciler: failing},
		"Retry, Continue":    &retry{InitialDelay: time.Hour, Continue: true, Reconciler: failing},
		"Retry, MaxAttempts": &retry{MaxAttempts: 1, Reconciler: failing},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, &steps{Steps: []stepOf{{Name: "db", Reconciler: below}}})
				s.ctx = ctx
				for range 3 {
					_, err := s.root.Reconcile(s.ctx, testRequest)
					wantErr(t, nil, err)
					time.Sleep(time.Minute)
				}
				equal(t, "status writes", 1, s.Count(statusWrittenDefault))
				contains(t, stored(s.world, newResource()).Status.GetCondition("Ready").Message, errTest.Error())
			})
		})
	}
}

// Does an error write the status each time because its text has the id of a request? Each write would trigger the next
// attempt.
func TestSteps_DoesAnErrorWithAnIDWriteTheStatus(t *testing.T) {
	ctx, texts := calledby.Controller(), []string{
		"RequestID 5b9f-81d0: throttled", "RequestID 77aa-10cd: throttled", "RequestID 77aa-10cd: no such zone",
	}
	synctest.Test(t, func(t *testing.T) {
		attempt := 0
		fails := &syncReconciler{Sync: func(context.Context, *fixture.Resource) error {
			attempt++
			return errors.New(texts[attempt-1])
		}}
		s := newStage(t, &steps{Steps: []stepOf{{Name: "dns", Reconciler: fails}, {Name: "x", Reconciler: returning(
			reconcilers.Result{}, reconcilers.ErrHaltSubReconcilers,
		)}}})
		s.ctx = ctx
		for i, want := range []int{1, 1, 2} {
			_, err := s.root.Reconcile(s.ctx, testRequest)
			wantText(t, "ResourceResourceReconciler.Steps.dns.SyncReconciler: "+texts[i], err)
			equal(t, "status writes", want, s.Count(statusWrittenDefault))
		}
	})
}

// What shows that a removal is stuck? The condition says which step waits for what since when, without further fields.
func TestSteps_WhatShowsAStuckRemoval(t *testing.T) {
	ctx := calledby.Controller()
	synctest.Test(t, func(t *testing.T) {
		r := &steps{Finalizer: "test-finalizer", Steps: []stepOf{newStep("db"), newStep("app", "db")}}
		s := readyStage(t, r, "db", "app")
		s.ctx = ctx
		s.holdChild("app", "example.com/hold")
		s.deleteResource()
		since := time.Now().UTC().Format(time.RFC3339)
		s.reconcile("app is deleted", "delete ConfigMap app", statusWritten)
		s.condition("Ready", "Unknown RemovingStep: step app: ConfigMap default/app: is being deleted, since "+since)
		time.Sleep(time.Minute)
		s.reconcile("app is held", statusWritten)
		s.condition("Ready", "Unknown RemovingStep: step app: ConfigMap default/app: is being deleted, "+
			"and has the finalizers example.com/hold, since "+time.Now().UTC().Format(time.RFC3339))
		s.reconcile("app is still held")
		s.holdChild("app")
		other := stored(s.world, newResource())
		other.Finalizers = append(other.Finalizers, "example.com/other")
		wantErr(t, nil, s.Server.Update(t.Context(), other))
		for range 3 {
			_, err := s.root.Reconcile(s.ctx, testRequest)
			wantErr(t, nil, err)
		}
		equal(t, "finalizers", []string{"example.com/other"}, stored(s.world, newResource()).Finalizers)
		s.condition("Ready", "Unknown RemovingStep: all steps are removed")
	})
}
