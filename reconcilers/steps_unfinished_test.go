// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

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
	former := newConfigMap("former", labelled, neverOwned, func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil })
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
