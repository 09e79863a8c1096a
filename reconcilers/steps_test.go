// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/readiness"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

type (
	steps  = reconcilers.Steps[*fixture.Resource]
	stepOf = reconcilers.Step[*fixture.Resource]
)

// rollout is a rule for ConfigMaps, whose key "ready" is the value that has been rolled out.
var rollout = readiness.Func(func(obj client.Object) readiness.Readiness {
	cm := obj.(*corev1.ConfigMap)
	switch cm.Data["ready"] {
	case cm.Data["value"]:
		return readiness.Readiness{State: readiness.Ready, Reason: "Ready"}
	case "failed":
		return readiness.Readiness{State: readiness.Failed, Reason: "Failed", Message: "has failed"}
	}
	return readiness.Readiness{State: readiness.Progressing, Reason: "Old", Message: "has an old value"}
})

// newStep returns a step with a ConfigMap of its name, which has the value of the resource. It is unwanted if the
// resource has the name of the step in the field "without".
func newStep(name string, dependsOn ...string) stepOf {
	return stepOf{
		Name: name, DependsOn: dependsOn, Ready: rollout,
		Wanted: func(_ context.Context, resource *fixture.Resource) bool {
			return !strings.Contains(resource.Spec.Fields["without"], name)
		},
		Reconciler: &childReconciler{
			DesiredChild: func(_ context.Context, resource *fixture.Resource) (*corev1.ConfigMap, error) {
				return &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: resource.Namespace, Name: name},
					Data:       map[string]string{"value": resource.Spec.Fields["value"]},
				}, nil
			},
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
				current.Data = reconcilers.MergeMaps(current.Data, desired.Data)
			},
			OurChild: func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Name == name },
			ReflectChildStatusOnParent: func(
				_ context.Context, parent *fixture.Resource, child *corev1.ConfigMap, _ error,
			) {
				delete(parent.Status.Fields, name)
				if child != nil {
					parent.Status.Fields = reconcilers.MergeMaps(parent.Status.Fields, map[string]string{name: "exists"})
				}
			},
		},
	}
}

// stage is a world with a resource and a controller of it.
type stage struct {
	*world
	ctx  context.Context
	root *resourceReconciler
	// after is the RequeueAfter of the last reconcile.
	after time.Duration
}

func newStage(t *testing.T, r subReconciler) *stage {
	w := newWorld(t, newResource(settled, specField("value", "1")))
	return &stage{
		world: w, ctx: calledby.Controller(), root: &resourceReconciler{Config: w.Config, Reconciler: r},
	}
}

func specField(name, value string) func(*fixture.Resource) {
	return func(r *fixture.Resource) {
		r.Spec.Fields = reconcilers.MergeMaps(r.Spec.Fields, map[string]string{name: value, fixture.DefaulterField: "ran"})
		r.Generation++
	}
}

// reconcile reconciles the resource and compares the writes.
func (s *stage) reconcile(what string, want ...string) {
	s.t.Helper()
	s.Trace()
	result, err := s.root.Reconcile(s.ctx, testRequest)
	wantErr(s.t, nil, err)
	s.after = result.RequeueAfter
	writes := []string{}
	for _, line := range s.Writes() {
		if !strings.HasPrefix(line, "event") && !strings.HasPrefix(line, "track") {
			writes = append(writes, strings.TrimPrefix(strings.ReplaceAll(line, "default/", ""), "default/"))
		}
	}
	equal(s.t, "writes, "+what, want, writes)
}

func (s *stage) changeResource(changes ...func(*fixture.Resource)) {
	s.t.Helper()
	r := stored(s.world, newResource())
	for _, change := range changes {
		change(r)
	}
	wantErr(s.t, nil, s.Server.Update(context.Background(), r))
}

// rollOut sets the key "ready" of a ConfigMap. An empty state means its current value.
func (s *stage) rollOut(name, state string) {
	s.t.Helper()
	cm := stored(s.world, newConfigMap(name))
	if state == "" {
		state = cm.Data["value"]
	}
	cm.Data["ready"] = state
	wantErr(s.t, nil, s.Server.Update(context.Background(), cm))
}

// condition compares a condition, as "status reason: message".
func (s *stage) condition(kind, want string) {
	s.t.Helper()
	got := "none"
	if c := stored(s.world, newResource()).Status.GetCondition(kind); c != nil {
		got = string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	equal(s.t, "condition "+kind, want, got)
}

const statusWritten = "update Resource/status test"

// chain returns three steps, each of which depends on the one before.
func chain() *steps {
	return &steps{Steps: []stepOf{newStep("web", "app"), newStep("app", "db"), newStep("db")}}
}

// An update passes through the steps in order. Nothing is written while a step waits.
func TestSteps_WaitForEachOther(t *testing.T) {
	ctx := calledby.Controller()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, chain())
		s.ctx = ctx
		since := time.Now().UTC().Format(time.RFC3339)
		s.reconcile("first", "create ConfigMap db", statusWritten)
		s.condition("Ready", "Unknown WaitingForStep: step db: ConfigMap default/db: has an old value, since "+since)
		for range 3 {
			time.Sleep(time.Minute)
			s.reconcile("waiting")
			equal(t, "requeue", 0, s.after)
		}

		s.rollOut("db", "")
		s.reconcile("db is ready", "create ConfigMap app", statusWritten)
		since = time.Now().UTC().Format(time.RFC3339)
		s.condition("Ready", "Unknown WaitingForStep: step app: ConfigMap default/app: has an old value, since "+since)
		s.rollOut("app", "")
		s.reconcile("app is ready", "create ConfigMap web", statusWritten)
		s.rollOut("web", "")
		s.reconcile("web is ready", statusWritten)
		s.condition("Ready", "True Ready: ")
		s.reconcile("all are ready")

		s.changeResource(specField("value", "2"))
		s.reconcile("update", "update ConfigMap db", statusWritten)
		s.reconcile("update, waiting")
		equal(t, "value of app", "1", stored(s.world, newConfigMap("app")).Data["value"])
		s.rollOut("db", "failed")
		s.reconcile("db fails", statusWritten)
		s.condition("Ready", "False StepFailed: step db: ConfigMap default/db: has failed, since "+
			time.Now().UTC().Format(time.RFC3339))
		s.rollOut("db", "")
		s.reconcile("db is updated", "update ConfigMap app", statusWritten)
	})
}

// Independent steps run together. The message names all that are waited for.
func TestSteps_IndependentStepsRunTogether(t *testing.T) {
	ctx := calledby.Controller()
	synctest.Test(t, func(t *testing.T) {
		db, cache, app := newStep("db"), newStep("cache"), newStep("app", "db", "cache")
		db.Condition, app.Condition = "DBReady", "AppReady"
		s := newStage(t, &steps{Steps: []stepOf{db, cache, app}})
		s.ctx = ctx
		first := time.Now().UTC().Format(time.RFC3339)
		s.reconcile("first", "create ConfigMap db", "create ConfigMap cache", statusWritten)
		s.condition("DBReady", "Unknown WaitingForStep: ConfigMap default/db: has an old value")
		s.condition("AppReady", "Unknown WaitingForStep: waits for step db")
		time.Sleep(time.Minute)
		s.rollOut("db", "failed")
		s.reconcile("db fails", statusWritten)
		s.condition("Ready", "False StepFailed: step db: ConfigMap default/db: has failed, since "+
			time.Now().UTC().Format(time.RFC3339)+"; step cache: ConfigMap default/cache: has an old value, since "+first)
		s.rollOut("db", "")
		s.reconcile("db is ready", statusWritten)
		s.condition("Ready", "Unknown WaitingForStep: step cache: ConfigMap default/cache: has an old value, since "+first)
		s.condition("DBReady", "True Ready: ")
		s.condition("AppReady", "Unknown WaitingForStep: waits for step cache")
	})
}

// The deadline is noticed without polling, announced once, and starts again with progress.
func TestSteps_ProgressDeadline(t *testing.T) {
	ctx := calledby.Controller()
	synctest.Test(t, func(t *testing.T) {
		db := newStep("db")
		db.ProgressDeadline = 10 * time.Minute
		s := newStage(t, &steps{Steps: []stepOf{db, newStep("app", "db")}})
		s.ctx = ctx
		announced := func(want int) {
			t.Helper()
			equal(t, "events", want, s.Count("event default/test Warning StepDeadlineExceeded"))
		}
		since := time.Now().UTC().Format(time.RFC3339)
		s.reconcile("first", "create ConfigMap db", statusWritten)
		equal(t, "requeue", 10*time.Minute, s.after)
		time.Sleep(4 * time.Minute)
		s.reconcile("waiting")
		equal(t, "requeue", 6*time.Minute, s.after)
		time.Sleep(s.after)

		result, err := s.root.Reconcile(s.ctx, testRequest)
		wantErr(t, nil, err)
		equal(t, "requeue", 0, result.RequeueAfter)
		announced(1)
		s.condition("Ready", "False StepDeadlineExceeded: step db: ConfigMap default/db: has an old value, since "+since+
			", longer than 10m0s")
		s.root = &resourceReconciler{Config: s.Config, Reconciler: s.root.Reconciler} // a restart
		time.Sleep(time.Hour)
		s.reconcile("waiting longer")
		announced(0)

		s.rollOut("db", "failed")
		s.reconcile("progress", statusWritten)
		equal(t, "requeue", 10*time.Minute, s.after)
		s.rollOut("db", "")
		s.reconcile("db is ready", "create ConfigMap app", statusWritten)
		equal(t, "requeue", 0, s.after)
	})
}

// readyStage is a stage in which all steps of r are ready.
func readyStage(t *testing.T, r *steps, names ...string) *stage {
	t.Helper()
	s := newStage(t, r)
	for range names {
		_, err := s.root.Reconcile(s.ctx, testRequest)
		wantErr(t, nil, err)
		for _, name := range names {
			if stored(s.world, newConfigMap(name)) != nil {
				s.rollOut(name, "")
			}
		}
	}
	_, err := s.root.Reconcile(s.ctx, testRequest)
	wantErr(t, nil, err)
	s.condition("Ready", "True Ready: ")
	return s
}

func (s *stage) deleteResource() {
	s.t.Helper()
	wantErr(s.t, nil, s.Server.Delete(context.Background(), newResource()))
}

// holdChild adds or removes the finalizers of a ConfigMap.
func (s *stage) holdChild(name string, finalizers ...string) {
	s.t.Helper()
	cm := stored(s.world, newConfigMap(name))
	cm.Finalizers = finalizers
	wantErr(s.t, nil, s.Server.Update(context.Background(), cm))
}

// requeuedAtDeadline checks that the last reconcile requested only one at the deadline of a removal.
func (s *stage) requeuedAtDeadline() {
	s.t.Helper()
	if s.after <= 4*time.Minute || s.after > 5*time.Minute {
		s.t.Errorf("requeued after %v, want the rest of 5 minutes", s.after)
	}
}

// The children of a resource that is being deleted are deleted in the reverse order, and each is gone before the next.
func TestSteps_AreRemovedInReverseOrder(t *testing.T) {
	r := chain()
	r.Finalizer = "test-finalizer"
	s := readyStage(t, r, "db", "app", "web")
	s.holdChild("app", "example.com/hold")
	s.deleteResource()
	s.reconcile("web", "delete ConfigMap web", statusWritten)
	s.reconcile("app", "delete ConfigMap app", statusWritten)
	s.reconcile("app is held", statusWritten)
	for range 2 {
		s.reconcile("app is still held")
		s.requeuedAtDeadline()
	}
	s.holdChild("app")
	s.reconcile("db", "delete ConfigMap db", statusWritten)
	finalizerCleared := `patch Resource test application/merge-patch+json {"metadata":{"finalizers":null,` +
		`"resourceVersion":"` + stored(s.world, newResource()).ResourceVersion + `"}}`
	s.reconcile("none is left", finalizerCleared)
	if stored(s.world, newResource()) != nil {
		t.Error("the resource still exists")
	}
}

// A child that the cache does not have yet is deleted before the step that it depends on.
func TestSteps_AreRemovedInReverseOrder_StaleReads(t *testing.T) {
	r := chain()
	r.Finalizer = "test-finalizer"
	s := readyStage(t, r, "db", "app", "web")
	s.Unseen = func(obj client.Object) bool { return obj.GetName() == "web" }
	s.deleteResource()
	s.reconcile("web", "delete ConfigMap web", statusWritten)
	if s.after == 0 {
		t.Error("no event announces the deletion of an object that the cache never had, but nothing is requeued")
	}
	s.reconcile("app", "delete ConfigMap app", statusWritten)
	s.requeuedAtDeadline()
	equal(t, "live lists after web is confirmed", 0, s.Count("live list"))
	s.reconcile("db", "delete ConfigMap db", statusWritten)
}

// An enclosing WithFinalizer keeps its finalizer until no step has a child left.
func TestSteps_BelowWithFinalizer(t *testing.T) {
	inner := chain()
	s := newStage(t, &reconcilers.WithFinalizer[*fixture.Resource]{Finalizer: "test-finalizer", Reconciler: inner})
	_, err := s.root.Reconcile(s.ctx, testRequest)
	wantErr(t, nil, err)
	s.deleteResource()
	s.reconcile("db", "delete ConfigMap db", statusWritten)
	equal(t, "finalizers", []string{"test-finalizer"}, stored(s.world, newResource()).Finalizers)
	_, err = s.root.Reconcile(s.ctx, testRequest)
	wantErr(t, nil, err)
	if stored(s.world, newResource()) != nil {
		t.Error("the resource still exists")
	}
}

// A step that fails or halts keeps the steps that depend on it from running, but no others.
func TestSteps_Errors(t *testing.T) {
	hour := reconcilers.Result{RequeueAfter: time.Hour}
	for name, tc := range map[string]struct {
		result reconcilers.Result
		err    error
		want   reconcilers.Result
		// returned is the error of Steps. A step that halts waits, so Steps returns none.
		returned error
	}{
		"error": {err: errTest, returned: errTest},
		"retry after": {
			hour, reconcilers.ErrRetryAfter, reconcilers.Result{RequeueAfter: time.Minute}, reconcilers.ErrRetryAfter,
		},
		// The requeue for the deadline must not replace the requeue of a halt, which is after a second.
		"halt": {err: reconcilers.ErrHaltSubReconcilers},
	} {
		t.Run(name, func(t *testing.T) {
			ran := false
			independent := &syncReconciler{Sync: func(context.Context, *fixture.Resource) error {
				ran = true
				return nil
			}}
			r := &steps{Steps: []stepOf{
				{Name: "db", Reconciler: returning(tc.result, tc.err), ProgressDeadline: time.Minute},
				{Name: "app", DependsOn: []string{"db"}, Reconciler: never(t)},
				{Name: "other", Reconciler: independent},
			}}
			resource := newResource()
			result, err := r.Reconcile(newWorld(t).Context(), resource)
			wantErr(t, tc.returned, err)
			equal(t, "the independent step has run", true, ran)
			contains(t, resource.Status.GetCondition("Ready").Message, "step db: has not finished, since ")
			if tc.err != errTest { //nolint:errorlint // identity
				equal(t, "requeue", tc.want.RequeueAfter, result.RequeueAfter.Round(time.Minute))
			}
		})
	}
}

// A child that the API server refuses is not ready, although its reconciler returns no error.
func TestSteps_ReflectedErrors(t *testing.T) {
	db := newStep("db")
	s := newStage(t, &steps{Steps: []stepOf{db, newStep("app", "db")}})
	s.Fail("create ConfigMap", errForbidden)
	s.reconcile("refused", "create ConfigMap db", statusWritten)
	c := stored(s.world, newResource()).Status.GetCondition("Ready")
	contains(t, c.Message, "step db: ConfigMap default/db: Forbidden, since ")
	equal(t, "reason", reconcilers.ReasonStepFailed, c.Reason)
	equal(t, "requeue", 10*time.Second, s.after.Round(time.Second))
	s.Heal()
	s.reconcile("accepted", "create ConfigMap db", statusWritten)
}

// Steps stop between two steps after the context has ended.
func TestSteps_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(newWorld(t).Context())
	r := &steps{Steps: []stepOf{
		{Name: "a", Reconciler: &syncReconciler{Sync: func(context.Context, *fixture.Resource) error {
			cancel()
			return nil
		}}},
		{Name: "b", Reconciler: never(t)},
		{Name: "c", Reconciler: never(t)},
	}}
	_, err := r.Reconcile(ctx, newResource())
	wantErr(t, context.Canceled, err)
}

func TestSteps_Table(t *testing.T) {
	now := time.Date(2026, 11, 24, 10, 12, 0, 0, time.UTC)
	parent := newResource(specField("value", "1"))
	rolledOut := func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"value": "1", "ready": "1"} }
	starting := func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"value": "1"} }
	wantedChild := func(name string) objects {
		child := wanted(name)
		claimed(child)
		starting(child)
		return objects{child}
	}
	// ready sets the condition, which changed at a time.
	ready := func(
		status metav1.ConditionStatus, reason, message string, at time.Time,
	) func(*fixture.Resource) {
		return func(r *fixture.Resource) {
			r.Status.Conditions = []metav1.Condition{{
				Type: "Ready", Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(at),
			}}
		}
	}
	exists := func(names ...string) func(*fixture.Resource) {
		return func(r *fixture.Resource) {
			r.Status.Fields = map[string]string{}
			for _, name := range names {
				r.Status.Fields[name] = "exists"
			}
		}
	}
	const waits = "step db: ConfigMap default/db: has an old value, since "
	waiting := func(since time.Time) func(*fixture.Resource) {
		return ready(metav1.ConditionUnknown, reconcilers.ReasonWaitingForStep, waits+since.Format(time.RFC3339), since)
	}
	five, ten := now.Add(-5*time.Minute), now.Add(-10*time.Minute)

	subReconcilerTests{
		"first step": {
			Resource: parent, Now: now,
			ExpectCreates: wantedChild("db"), ExpectEvents: events{eventFor("Created", "db")},
			ExpectResource: rtesting.With(parent, waiting(now), exists("db")),
			ExpectedResult: reconcilers.Result{RequeueAfter: 10 * time.Minute},
		},
		"still waiting": {
			Resource: rtesting.With(parent, waiting(five)), GivenObjects: objects{newConfigMap("db", starting)}, Now: now,
			ExpectResource: rtesting.With(parent, waiting(five), exists("db")),
			ExpectedResult: reconcilers.Result{RequeueAfter: 5 * time.Minute},
		},
		"deadline exceeded": {
			Resource: rtesting.With(parent, waiting(ten)), GivenObjects: objects{newConfigMap("db", starting)}, Now: now,
			ExpectResource: rtesting.With(parent, exists("db"), ready(
				metav1.ConditionFalse, reconcilers.ReasonStepDeadlineExceeded,
				waits+ten.Format(time.RFC3339)+", longer than 10m0s", now,
			)),
			ExpectEvents: events{warning("StepDeadlineExceeded", waits+ten.Format(time.RFC3339)+", longer than 10m0s")},
		},
		"second step": {
			Resource: rtesting.With(parent, waiting(five)), GivenObjects: objects{newConfigMap("db", rolledOut)}, Now: now,
			ExpectCreates: wantedChild("app"), ExpectEvents: events{eventFor("Created", "app")},
			ExpectResource: rtesting.With(parent, exists("db", "app"), ready(
				metav1.ConditionUnknown, reconcilers.ReasonWaitingForStep,
				"step app: ConfigMap default/app: has an old value, since "+now.Format(time.RFC3339), five,
			)),
		},
		"all ready": {
			Resource:     rtesting.With(parent, waiting(five)),
			GivenObjects: objects{newConfigMap("db", rolledOut), newConfigMap("app", rolledOut)}, Now: now,
			ExpectResource: rtesting.With(
				parent, exists("db", "app"), ready(metav1.ConditionTrue, reconcilers.ReasonStepsReady, "", now),
			),
		},
		"removal waits": {
			Resource:     rtesting.With(parent, terminating, finalizer("hold"), exists("db")),
			GivenObjects: objects{newConfigMap("db", starting), newConfigMap("app", deleting)}, Now: now,
			ExpectResource: rtesting.With(parent, terminating, finalizer("hold"), exists("db"), ready(
				metav1.ConditionUnknown, reconcilers.ReasonRemovingStep, "step app: ConfigMap default/app: is being deleted, "+
					"and has the finalizers hold.example.com/on, since "+now.Format(time.RFC3339), now,
			)),
			ShouldErr: true,
			// The request is repeated at the deadline of the removal.
			Verify: failsWith(reconcilers.ErrRetryAfter, reconcilers.Result{RequeueAfter: 5 * time.Minute}),
		},
	}.Run(t, scheme, func(*testing.T, *subReconcilerCase, reconcilers.Config) subReconciler {
		db := newStep("db")
		db.ProgressDeadline = 10 * time.Minute
		return &steps{Steps: []stepOf{db, newStep("app", "db")}}
	})
}
