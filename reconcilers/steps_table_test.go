// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

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
