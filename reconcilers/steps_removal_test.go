// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// A step that is no longer wanted is removed after the steps that depend on it are ready without it.
func TestSteps_Unwanted(t *testing.T) {
	s := readyStage(t, chain(), "db", "app", "web")

	// app changes with the value, and then db is no longer needed.
	s.changeResource(specField("without", "db"), specField("value", "2"))
	s.reconcile("db is needed by the old app", "update ConfigMap app", statusWritten)
	s.rollOut("app", "")
	s.reconcile("app is updated", "update ConfigMap web", "delete ConfigMap db", statusWritten)
	s.rollOut("web", "")
	s.reconcile("all are updated", statusWritten)
	s.condition("Ready", "True Ready: ")
	equal(t, "reflected children", map[string]string{"app": "exists", "web": "exists"},
		stored(s.world, newResource()).Status.Fields)
	for range 2 {
		s.reconcile("steady state")
		equal(t, "live lists", 0, s.Count("live"))
	}

	s.changeResource(specField("without", ""))
	s.reconcile("wanted again", "create ConfigMap db", statusWritten)
	s.rollOut("db", "")
	s.reconcile("db is ready", statusWritten)
}

// A step that depends on an unwanted step depends on the dependencies of that step.
func TestSteps_UnwantedInTheMiddle(t *testing.T) {
	s := newStage(t, chain())
	s.changeResource(specField("without", "app"))
	s.reconcile("first", "create ConfigMap db", statusWritten)
	s.reconcile("web waits for db")
	s.rollOut("db", "")
	s.reconcile("db is ready", "create ConfigMap web", statusWritten)
}

// Unwanted steps are removed in the reverse order. What the cache does not have is looked up once, not in each
// reconcile.
func TestSteps_SeveralUnwanted(t *testing.T) {
	r := chain()
	r.Steps[1].Condition = "AppReady"
	s := readyStage(t, r, "db", "app", "web")
	s.holdChild("web", "example.com/hold")
	s.changeResource(specField("without", "db app web"))
	s.reconcile("web", "delete ConfigMap web", statusWritten)
	s.reconcile("web is held", statusWritten)
	s.condition("AppReady", "Unknown RemovingStep: waits for step web")
	for range 2 {
		s.reconcile("web is still held")
	}
	s.holdChild("web")
	s.reconcile("app", "delete ConfigMap app", statusWritten)
	s.reconcile("db", "delete ConfigMap db", statusWritten)
	s.reconcile("none is left", statusWritten)
	s.condition("Ready", "True Ready: ")
	s.condition("AppReady", "True StepUnwanted: ")
	_, err := s.root.Reconcile(s.ctx, testRequest)
	wantErr(t, nil, err)
	equal(t, "live lists", 0, s.Count("live"))
}

// The Finalize function of a step runs when the step is not wanted, and its finalizer is removed.
func TestSteps_UnwantedReconcilers(t *testing.T) {
	log := []string{}
	call := func(what string, err error) func(context.Context, *fixture.Resource) error {
		return func(context.Context, *fixture.Resource) error {
			log = append(log, what)
			return err
		}
	}
	unwanted := func(context.Context, *fixture.Resource) bool { return false }
	failed := errors.New("failed")
	inner := &syncReconciler{Sync: call("sync inner", nil), Finalize: call("finalize inner", nil)}
	failing := &syncReconciler{Sync: call("sync failing", nil), Finalize: call("finalize failing", failed)}
	r := &steps{Steps: []stepOf{
		{Name: "base", Wanted: unwanted, Reconciler: never(t)},
		{
			Name: "failing", DependsOn: []string{"base"}, Wanted: unwanted,
			Reconciler: &retry{Continue: true, Reconciler: failing},
		},
		{Name: "nested", Wanted: unwanted, Reconciler: &steps{Steps: []stepOf{
			{Name: "inner", Reconciler: &reconcilers.WithFinalizer[*fixture.Resource]{Finalizer: "test", Reconciler: inner}},
		}}},
	}}
	w := newWorld(t, newResource(finalizer("test")))
	resource := newResource(finalizer("test"))
	result, err := r.Reconcile(w.Context(), resource)
	wantErr(t, failed, err)
	equal(t, "requeue", true, result.RequeueAfter > 0)
	equal(t, "calls", []string{"finalize inner", "finalize failing"}, log)
	equal(t, "finalizers", nil, resource.Finalizers)
	// Outside of steps, only what belongs to a resource that is being deleted is removed.
	equal(t, "removal of a terminating resource", true, reconcilers.MustRemove(w.Context(), newResource(terminating)))
	equal(t, "removal of a resource", false, reconcilers.MustRemove(w.Context(), newResource()))
}

// A set of children is removed as a whole, and a child with the error OnlyReconcileChildStatus must be ready.
func TestSteps_ChildSets(t *testing.T) {
	var onlyStatus error
	set := newChildSet(func(*fixture.Resource, string) {})
	set.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["id"] != "" }
	set.DesiredChildren = func(context.Context, *fixture.Resource) ([]*corev1.ConfigMap, error) {
		children := []*corev1.ConfigMap{}
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			children = append(children, member(id, "value", "1"))
		}
		return children, onlyStatus
	}
	first := newStep("set")
	first.Reconciler = set
	s := newStage(t, &steps{Steps: []stepOf{first, newStep("app", "set")}})
	_, err := s.root.Reconcile(s.ctx, testRequest)
	wantErr(t, nil, err)
	equal(t, "children", 5, s.Count("create"))
	r := stored(s.world, newResource())
	contains(t, r.Status.GetCondition("Ready").Message, "ConfigMap default/child-c: has an old value, 2 more, since ")

	onlyStatus = reconcilers.OnlyReconcileChildStatus
	s.reconcile("only status")
	s.changeResource(specField("without", "set"))
	s.reconcile("app does not depend on a set that is not wanted", "create ConfigMap app", statusWritten)
	s.rollOut("app", "")
	s.reconcile("app is ready", "delete ConfigMap child-a", "delete ConfigMap child-b", "delete ConfigMap child-c",
		"delete ConfigMap child-d", "delete ConfigMap child-e", statusWritten)
	s.reconcile("no child is left", statusWritten)
	s.condition("Ready", "True Ready: ")
}

// Prune does not delete the children of a step that waits, nor does it remove steps out of order.
func TestSteps_BelowPrune(t *testing.T) {
	s := newStage(t, &prune{Inventory: inventoryKey, Reconciler: chain()})
	s.changeResource(recorded(`{"kinds":["ConfigMap"]}`))
	for _, name := range []string{"db", "app", "web", "former"} {
		wantErr(t, nil, s.Server.Create(t.Context(), newConfigMap(name, inventoried, func(cm *corev1.ConfigMap) {
			cm.ResourceVersion, cm.Data = "", map[string]string{"value": "1", "ready": "1"}
		})))
	}
	s.changeResource(specField("value", "2"))
	s.reconcile("db is updated", "update ConfigMap db", statusWritten)
	s.changeResource(specField("without", "app db"))
	s.reconcile("app is needed by web", "update ConfigMap web", statusWritten)
	s.rollOut("web", "")
	s.reconcile("app is removed before db", "delete ConfigMap app", statusWritten)
	s.reconcile("db is removed before other objects", "delete ConfigMap db", statusWritten)
	s.reconcile("all is done", "delete ConfigMap former", statusWritten)
}

// Is a removal that makes no progress recorded? Once, after five minutes, with what it waits for, and nothing polls.
func TestSteps_IsAStuckRemovalRecorded(t *testing.T) {
	for name, remove := range map[string]func(*stage){
		"deleted":  (*stage).deleteResource,
		"unwanted": func(s *stage) { s.changeResource(specField("without", "db app web")) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := calledby.Controller()
			synctest.Test(t, func(t *testing.T) {
				r := chain()
				r.Finalizer = "test-finalizer"
				s := readyStage(t, r, "db", "app", "web")
				s.ctx = ctx
				s.holdChild("web", "example.com/hold")
				remove(s)
				s.reconcile("web", "delete ConfigMap web", statusWritten)
				s.reconcile("web is held", statusWritten)
				since := time.Now().UTC().Format(time.RFC3339)
				equal(t, "requeue", 5*time.Minute, s.after)
				const event = "event default/test Warning RemovalStuck"
				time.Sleep(s.after)

				s.Trace()
				result, err := s.root.Reconcile(s.ctx, testRequest)
				wantErr(t, nil, err)
				equal(t, "requeue", 0, result.RequeueAfter)
				text := "step web: ConfigMap default/web: is being deleted, and has the finalizers example.com/hold, " +
					"since " + since + ", longer than 5m0s"
				equal(t, "events", 1, s.Count(event+": "+text))
				s.condition("Ready", "Unknown RemovingStep: "+text)
				s.root = &resourceReconciler{Config: s.Config, Reconciler: s.root.Reconciler} // a restart
				time.Sleep(time.Hour)
				s.Trace()
				_, err = s.root.Reconcile(s.ctx, testRequest)
				wantErr(t, nil, err)
				equal(t, "trace of the same wait", 0, s.Count(event)+s.Count(statusWritten))
				s.holdChild("web")
				s.reconcile("progress", "delete ConfigMap app", statusWritten)
			})
		})
	}
}

// Who records that a finalizer is not ready to be cleared, and when?
func TestWithFinalizer_NotReadyForLong(t *testing.T) {
	const event = "event default/test Warning RemovalStuck"
	for name, within := range map[string]func(subReconciler) (r subReconciler, want string){
		"alone": func(r subReconciler) (subReconciler, string) {
			return r, event + ": finalizer example.com/slow is not ready to be cleared since "
		},
		"in a step": func(r subReconciler) (subReconciler, string) {
			return &steps{
				Finalizer: "test-finalizer", Condition: "Ready",
				Steps: []reconcilers.Step[*fixture.Resource]{{Name: "slow", Reconciler: r}},
			}, event + ": step slow: finalizer example.com/slow is not ready to be cleared, since "
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := calledby.Controller()
			synctest.Test(t, func(t *testing.T) {
				ready := false
				r, want := within(&withFinalizer{
					Finalizer: "example.com/slow", Reconciler: nothing(),
					ReadyToClearFinalizer: func(context.Context, *fixture.Resource) bool { return ready },
				})
				s := newStage(t, r)
				s.ctx = ctx
				reconcile := func(after time.Duration) (events, others int) {
					t.Helper()
					time.Sleep(after)
					s.Trace()
					result, err := s.root.Reconcile(s.ctx, testRequest)
					wantErr(t, nil, err)
					s.after = result.RequeueAfter
					events = s.Count(want)
					return events, s.Count(event) - events
				}
				reconcile(0)
				s.deleteResource()
				for what, after := range []time.Duration{0, time.Minute, 4 * time.Minute, time.Hour} {
					events, others := reconcile(after)
					wanted := map[bool]int{true: 1}[what == 2]
					if events != wanted || others != 0 {
						t.Errorf("reconcile %d: %d events %q and %d others, want %d", what, events, want, others, wanted)
					}
					if what == 1 {
						equal(t, "requeue", 4*time.Minute, s.after)
					}
				}
				ready = true
				reconcile(time.Minute)
				wantErr(t, nil, client.IgnoreNotFound(s.Server.Get(t.Context(), testRequest.NamespacedName, newResource())))
			})
		})
	}
}
