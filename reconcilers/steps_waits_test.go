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

// places wrap a reconciler.
var places = map[string]func(subReconciler) subReconciler{
	"itself":   func(r subReconciler) subReconciler { return r },
	"Sequence": func(r subReconciler) subReconciler { return sequence{nothing(), r, nothing()} },
	"Always":   func(r subReconciler) subReconciler { return always{nothing(), r} },
	"ForEach":  func(r subReconciler) subReconciler { return &forEach{Items: items("a"), Reconciler: r} },
	"IfThen":   func(r subReconciler) subReconciler { return &ifThen{If: isTrue, Then: r} },
	"TryCatch": func(r subReconciler) subReconciler { return &tryCatch{Try: r} },
	"Advice":   func(r subReconciler) subReconciler { return &advice{Reconciler: r} },
	"Retry":    func(r subReconciler) subReconciler { return &retry{Reconciler: r} },
	"Timeout":  func(r subReconciler) subReconciler { return &timeout{After: time.Minute, Reconciler: r} },
	"WithConfig": func(r subReconciler) subReconciler {
		return &withConfig{Config: sameConfig, Reconciler: r}
	},
	"Steps": func(r subReconciler) subReconciler {
		return &steps{Condition: "InnerReady", Steps: []stepOf{{Name: "inner", Ready: rollout, Reconciler: r}}}
	},
	"WithFinalizer": func(r subReconciler) subReconciler {
		return &withFinalizer{Finalizer: "example.com/place", Reconciler: r}
	},
}

// Does a step count as ready whose child was not reconciled? The next step must not start, and must start later.
func TestSteps_DoesTheNextStepStartIfAChildWasNotReconciled(t *testing.T) {
	ctx := calledby.Controller()
	tolerate := func(_ context.Context, _ *fixture.Resource, result reconcilers.Result, _ error) (
		reconcilers.Result, error,
	) {
		return result, nil
	}
	for name, below := range map[string]func(subReconciler) subReconciler{
		"Periodic": func(r subReconciler) subReconciler { return &periodic{Interval: time.Hour, Reconciler: r} },
		"Periodic, with LastRun": func(r subReconciler) subReconciler {
			lastRun := func(context.Context, *fixture.Resource) time.Time { return time.Now() }
			return &periodic{Interval: time.Hour, LastRun: lastRun, Reconciler: r}
		},
		"RateLimit": func(r subReconciler) subReconciler {
			return &rateLimit{PerResource: true, Interval: time.Hour, Continue: true, Reconciler: r}
		},
		"RateLimit, of all resources": func(r subReconciler) subReconciler {
			return &rateLimit{Interval: time.Hour, Continue: true, Reconciler: r}
		},
		"RateLimit, without Continue": func(r subReconciler) subReconciler {
			return &rateLimit{Interval: time.Hour, Reconciler: r}
		},
		"Retry":                   func(r subReconciler) subReconciler { return &retry{Continue: true, Reconciler: r} },
		"Retry, without Continue": func(r subReconciler) subReconciler { return &retry{Reconciler: r} },
		"TryCatch":                func(r subReconciler) subReconciler { return &tryCatch{Try: r, Catch: tolerate} },
		"Paused": func(r subReconciler) subReconciler {
			reason := func(_ context.Context, r *fixture.Resource) (string, error) { return r.Spec.Fields["pause"], nil }
			return &paused{Condition: "Paused", Reconciler: r, PausedBy: reason}
		},
	} {
		for place, wrap := range places {
			t.Run(name+" in "+place, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					db := newStep("db")
					db.Reconciler = wrap(below(db.Reconciler))
					s := newStage(t, &steps{Steps: []stepOf{db, newStep("app", "db")}})
					s.ctx = ctx
					fails := name == "TryCatch" || name == "Retry" || name == "Retry, without Continue"
					if fails {
						s.Fail("create ConfigMap default/db", errTest)
					}
					s.changeResource(specField("pause", "for the test"))
					request := func() {
						_, err := s.root.Reconcile(s.ctx, testRequest)
						wantErr(t, nil, err)
						synctest.Wait()
					}
					for range 3 {
						request()
						if stored(s.world, newConfigMap("app")) != nil {
							t.Fatal("the next step has started")
						}
						contains(t, stored(s.world, newResource()).Status.GetCondition("Ready").Message, "step db: ")
						time.Sleep(time.Millisecond)
					}
					s.Heal()
					s.changeResource(specField("pause", ""))
					for range 3 {
						if stored(s.world, newConfigMap("db")) != nil {
							s.rollOut("db", "")
						}
						time.Sleep(2 * time.Hour)
						request()
					}
					if stored(s.world, newConfigMap("app")) == nil {
						t.Fatal("the next step has not started")
					}
					s.rollOut("app", "")
					time.Sleep(2 * time.Hour)
					request()
					s.condition("Ready", "True Ready: ")
					if name == "RateLimit, without Continue" {
						return // the reconcilers that follow, and the steps, wait for it
					}
					s.Trace()
					request()
					equal(t, "status writes while the step is deferred", 0, s.Count(statusWrittenDefault))
				})
			})
		}
	}
}

// Does a step stay ready that was ready for an older generation? Not if the new generation was not reconciled.
func TestSteps_IsAStepReadyWhoseNewGenerationIsDeferred(t *testing.T) {
	ctx := calledby.Controller()
	synctest.Test(t, func(t *testing.T) {
		db := newStep("db")
		db.Reconciler = &rateLimit{PerResource: true, Interval: time.Hour, Continue: true, Reconciler: db.Reconciler}
		s := newStage(t, &steps{Steps: []stepOf{db}})
		s.ctx = ctx
		s.reconcile("first", "create ConfigMap db", statusWritten)
		s.rollOut("db", "")
		time.Sleep(time.Hour)
		s.reconcile("db is ready", statusWritten)
		s.condition("Ready", "True Ready: ")
		s.changeResource(specField("value", "2"))
		s.reconcile("deferred", statusWritten)
		s.condition("Ready", "Unknown WaitingForStep: step db: "+
			"deferred by RateLimit, at most 1 runs start within 1h0m0s, since "+time.Now().UTC().Format(time.RFC3339))
		s.reconcile("still deferred")
		time.Sleep(s.after)
		s.reconcile("reconciled", "update ConfigMap db", statusWritten)
	})
}

// finalizing returns a resource that is being deleted and has finalizers.
func finalizing(names ...string) *fixture.Resource {
	return newResource(terminating, func(r *fixture.Resource) { r.Finalizers = names })
}

// Is the outer finalizer kept while an inner one is not ready to be cleared? The inner one is cleared first, whatever
// is between them.
func TestWithFinalizer_IsTheOuterFinalizerKept(t *testing.T) {
	for place, wrap := range places {
		for what, newInner := range map[string]func(ready *bool) subReconciler{
			"ReadyToClearFinalizer": func(ready *bool) subReconciler {
				return &withFinalizer{Finalizer: "example.com/inner", Reconciler: nothing(), ReadyToClearFinalizer: func(
					context.Context, *fixture.Resource,
				) bool {
					return *ready
				}}
			},
			"child with a finalizer": func(*bool) subReconciler {
				child := newChild(func(*fixture.Resource, string) {})
				withoutOwner(child)
				child.ChildObjectManager, child.MergeBeforeUpdate, child.Finalizer = nil, mergeData, "example.com/inner"
				return child
			},
			"set with a finalizer": func(*bool) subReconciler {
				set := newChildSet(func(*fixture.Resource, string) {})
				withoutOwners(set)
				set.SkipOwnerReference, set.Finalizer = false, "example.com/inner"
				return set
			},
		} {
			t.Run(what+" in "+place, func(t *testing.T) {
				child := newConfigMap("child", identified("a"), func(cm *corev1.ConfigMap) {
					cm.Finalizers = []string{"example.com/hold"}
				})
				given := finalizing("example.com/outer", "example.com/place", "example.com/inner")
				w := newWorld(t, given, child)
				ready := false
				root := &resourceReconciler{Config: w.Config, Reconciler: &withFinalizer{
					Finalizer: "example.com/outer", Reconciler: wrap(newInner(&ready)),
				}}
				if place != "WithFinalizer" {
					given.Finalizers = []string{"example.com/outer", "example.com/inner"}
					wantErr(t, nil, w.Server.Update(t.Context(), given))
				}
				for range 2 {
					_, err := root.Reconcile(calledby.Controller(), testRequest)
					wantErr(t, nil, err)
					equal(t, "finalizers", given.Finalizers, stored(w, newResource()).Finalizers)
				}
				ready = true
				if held := stored(w, child); held != nil {
					held.Finalizers = nil
					wantErr(t, nil, w.Server.Update(t.Context(), held))
					if stored(w, child) != nil {
						wantErr(t, nil, w.Server.Delete(t.Context(), child))
					}
				}
				for range 3 {
					_, err := root.Reconcile(calledby.Controller(), testRequest)
					wantErr(t, nil, err)
				}
				if left := stored(w, newResource()); left != nil {
					t.Errorf("the resource still has the finalizers %v", left.Finalizers)
				}
			})
		}
	}
}

// Does a finalizer in a step that is not ready hold the removal of the step before it?
func TestSteps_DoesAFinalizerHoldTheOrderOfTheRemoval(t *testing.T) {
	ready := false
	app := newStep("app", "db")
	app.Reconciler = &withFinalizer{Finalizer: "example.com/app", Reconciler: app.Reconciler, ReadyToClearFinalizer: func(
		context.Context, *fixture.Resource,
	) bool {
		return ready
	}}
	s := readyStage(t, &steps{Finalizer: "example.com/steps", Steps: []stepOf{newStep("db"), app}}, "db", "app")
	s.deleteResource()
	s.reconcile("app is removed", "delete ConfigMap app", statusWritten)
	s.reconcile("the finalizer is not ready", statusWritten)
	contains(t, stored(s.world, newResource()).Status.GetCondition("Ready").Message,
		"step app: finalizer example.com/app is not ready to be cleared, since ")
	s.reconcile("the finalizer is still not ready")
	ready = true
	_, err := s.root.Reconcile(s.ctx, testRequest)
	wantErr(t, nil, err)
	equal(t, "deletions", 1, s.Count("delete ConfigMap default/db"))
}

// Does a Prune delete former children while a finalizer below it is not ready?
func TestPrune_WaitsForFinalizersBelow(t *testing.T) {
	ready := false
	former := newConfigMap("former", inventoried, neverOwned, func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil })
	given := newResource(finalizer("example.com/inner"), terminating, recorded(`{"kinds":["ConfigMap"]}`))
	w := newWorld(t, given, former)
	root := &resourceReconciler{Config: w.Config, Reconciler: &prune{
		Inventory: inventoryKey, Reconciler: &withFinalizer{
			Finalizer: "example.com/inner", Reconciler: nothing(),
			ReadyToClearFinalizer: func(context.Context, *fixture.Resource) bool { return ready },
		},
	}}
	for _, want := range []int{0, 1} {
		_, err := root.Reconcile(calledby.Controller(), testRequest)
		wantErr(t, nil, err)
		equal(t, "deletions", want, w.Count("delete ConfigMap"))
		ready = true
	}
}

// Which children are left when a step with an IfThen is removed that has flipped? None, and the finalizer is kept until
// then.
func TestIfThen_WhatIsLeftOfAStepThatFlipped(t *testing.T) {
	for name, remove := range map[string]func(*stage){
		"deletion": func(s *stage) { s.deleteResource() },
		"unwanted": func(s *stage) { s.changeResource(specField("without", "either")) },
	} {
		t.Run(name, func(t *testing.T) {
			either := newStep("either")
			either.Reconciler = &ifThen{
				If:   func(_ context.Context, r *fixture.Resource) bool { return r.Spec.Fields["choose"] == "b" },
				Then: newStep("b").Reconciler, Else: newStep("a").Reconciler,
			}
			s := readyStage(t, &steps{Finalizer: "example.com/f", Steps: []stepOf{either}}, "a")
			s.changeResource(specField("choose", "b"))
			s.reconcile("b is chosen", "create ConfigMap b", statusWritten)
			s.rollOut("b", "")
			s.holdChild("a", "example.com/hold")
			remove(s)
			s.reconcile("both are removed", "delete ConfigMap b", "delete ConfigMap a", statusWritten)
			s.reconcile("a still exists", statusWritten)
			equal(t, "finalizers", []string{"example.com/f"}, stored(s.world, newResource()).Finalizers)
			contains(t, stored(s.world, newResource()).Status.GetCondition("Ready").Message,
				"ConfigMap default/a: is being deleted")
			s.holdChild("a")
			_, err := s.root.Reconcile(s.ctx, testRequest)
			wantErr(t, nil, err)
			if left := stored(s.world, newResource()); name == "deletion" && left != nil {
				t.Errorf("the resource still has the finalizers %v", left.Finalizers)
			}
		})
	}
}
