// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/apis"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

var (
	requeue     = reconcilers.Result{Requeue: true} //nolint:staticcheck // users' tests expect it
	errConflict = apierrs.NewConflict(schema.GroupResource{Resource: "resources"}, "test", errors.New("was modified"))
	errInvalid  = apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "test", nil)
)

// syncing returns the Metadata of a case for resourceFactory.
func syncing(sync func(context.Context, *fixture.Resource)) map[string]any {
	return reconciling(&syncReconciler{
		Sync: func(ctx context.Context, r *fixture.Resource) error { sync(ctx, r); return nil },
	})
}

func TestResourceReconciler_Status(t *testing.T) {
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	sized := func(r *fixture.Resource) { r.Status.Size = new(resource.MustParse("1")) }
	written := objects{newResource(settled, sized, ran)}
	skipped := func(r *resourceReconciler) { r.SkipStatusUpdate, r.Reconciler = true, setField(minute, errTest) }

	cases := rtesting.ReconcilerTests{
		// Results are returned unchanged.
		"nothing changes": {Metadata: reconciling(returning(minute, nil)), ExpectedResult: minute},
		// Errors are returned unchanged.
		"nothing changes and failure": {
			Metadata: reconciling(returning(minute, errTest)), ShouldErr: true, Verify: failsWith(errTest, minute),
		},
		// The write triggers the next request, so the result is empty.
		"written": {Metadata: reconciling(setField(minute, nil)), ExpectStatusUpdates: written, ExpectEvents: statusUpdated},
		// The write does not hide an error.
		"written and failure": {
			Metadata: reconciling(setField(minute, errTest)), ExpectStatusUpdates: written, ExpectEvents: statusUpdated,
			ShouldErr: true, Verify: failsWith(errTest),
		},
		// A halt is not a failure.
		"written and halt": {
			Metadata: reconciling(setField(minute, reconcilers.ErrHaltSubReconcilers)), ExpectStatusUpdates: written,
			ExpectEvents: statusUpdated,
		},
		// A durable error is not retried until the state changes.
		"written and durable": {
			Metadata:            reconciling(setField(reconcilers.Result{}, reconcilers.ErrDurable)),
			ExpectStatusUpdates: written, ExpectEvents: statusUpdated,
		},
		// A quiet failure is retried with back-off, without an error. The RequeueAfter is ignored.
		"written and quiet failure": {
			Metadata: reconciling(setField(minute, errQuiet)), ExpectStatusUpdates: written, ExpectEvents: statusUpdated,
		},
		// A halt without a change requests back-off.
		"halt": {
			Metadata: reconciling(returning(reconcilers.Result{}, reconcilers.ErrHaltSubReconcilers)), ExpectedResult: requeue,
		},
		// A quiet error requests back-off without an error.
		"quiet failure": {Metadata: reconciling(returning(minute, errQuiet)), ExpectedResult: requeue},
		// ErrSkipStatusUpdate alone is an error like any other error.
		"skipped by the error": {
			Metadata:  reconciling(setField(minute, reconcilers.ErrSkipStatusUpdate)),
			ShouldErr: true, Verify: failsWith(reconcilers.ErrSkipStatusUpdate, minute),
		},
		// Joined with ErrQuiet, it is not reported as an error.
		"skipped by a quiet error": {
			Metadata:       reconciling(setField(minute, errors.Join(reconcilers.ErrSkipStatusUpdate, reconcilers.ErrQuiet))),
			ExpectedResult: requeue,
		},
		// SkipStatusUpdate returns results and errors unchanged.
		"skipped by the field": {Metadata: changes(skipped), ShouldErr: true, Verify: failsWith(errTest, minute)},
		// The earlier change triggers the next request, so a conflict is not a failure. A controller always retries,
		// regardless of the RequeueAfter.
		"conflict": {
			Metadata: reconciling(setField(minute, nil)), WithReactors: failing("update", "Resource/status", errConflict),
			ExpectStatusUpdates: written,
		},
		// The conflict does not hide the error.
		"conflict and failure": {
			Metadata: reconciling(setField(reconcilers.Result{}, errTest)), WithReactors: failing(
				"update", "Resource/status", errConflict,
			),
			ExpectStatusUpdates: written, ShouldErr: true, Verify: failsWith(errTest),
		},
		// The failure is returned and recorded.
		"write fails": {
			Metadata: reconciling(setField(minute, nil)), WithReactors: failing("update", "Resource/status", errTest),
			ExpectStatusUpdates: written,
			ExpectEvents:        events{warning("StatusUpdateFailed", "Failed to update status: failure of the test")},
			ShouldErr:           true, Verify: failsWith(errTest),
		},
		// Neither of two failures hides the other.
		"write fails after a failure": {
			Metadata:     reconciling(setField(minute, errTest)),
			WithReactors: failing("update", "Resource/status", errForbidden), ExpectStatusUpdates: written,
			ExpectEvents: events{
				warning("StatusUpdateFailed", "Failed to update status: "+errForbidden.Error()),
			}, ShouldErr: true,
			Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				wantErr(t, errTest, err)
				wantErr(t, errForbidden, err)
			},
		},
		// Statuses are compared semantically.
		"an equal value with another spelling": {
			Metadata: syncing(func(_ context.Context, r *fixture.Resource) { r.Status.Size = new(resource.MustParse("1000m")) }),
		},
		// Changes in memory to other fields are not written.
		"only the spec changes": {Metadata: syncing(func(_ context.Context, r *fixture.Resource) {
			r.Spec.Fields["other"] = "value"
			r.Labels = map[string]string{"other": "value"}
		})},
	}
	inAll(cases, func(_ string, tc *rtesting.ReconcilerTestCase) {
		tc.Request, tc.GivenObjects, tc.StatusSubResourceTypes = testRequest, objects{newResource(settled, sized)}, hasStatus
	}).Run(t, scheme, resourceFactory)

	// The result that a controller receives differs if the status was written.
	managed := map[string]reconcilers.Result{
		"written": minute, "written and failure": minute, "written and halt": minute, "written and quiet failure": requeue,
		"conflict": requeue, "conflict and failure": requeue,
	}
	t.Run("managed", func(t *testing.T) {
		inAll(cases, func(name string, tc *rtesting.ReconcilerTestCase) {
			if result, differs := managed[name]; differs && tc.ShouldErr {
				tc.Verify = failsWith(errTest, result)
			} else if differs {
				tc.ExpectedResult = result
			}
			if strings.HasPrefix(name, "written") {
				tc.ExpectEvents = nil // StatusEvents is not set
			}
			if tc.ShouldErr && name != "write fails" { // this failure has its own event
				cause := errTest
				if name == "skipped by the error" {
					cause = reconcilers.ErrSkipStatusUpdate
				}
				failed := warning("ReconcileFailed", "ResourceResourceReconciler.SyncReconciler: "+cause.Error())
				tc.ExpectEvents = append(slices.Clip(tc.ExpectEvents), failed)
			}
		}).Run(t, scheme, func(t *testing.T, tc *rtesting.ReconcilerTestCase, c reconcilers.Config) root {
			return ctrlreconcile.Func(resourceFactory(t, tc, c).(*resourceReconciler).ReconcileManaged)
		})
	})
}

func TestResourceReconciler_ObservedGeneration(t *testing.T) {
	observed := func(generation int64) objects {
		return objects{
			newResource(settled, ran, func(r *fixture.Resource) { r.Generation, r.Status.ObservedGeneration = 7, generation }),
		}
	}
	inAll(rtesting.ReconcilerTests{
		"success": {Metadata: reconciling(setField(reconcilers.Result{}, nil)), ExpectStatusUpdates: observed(7)},
		"halt": {
			Metadata:            reconciling(setField(reconcilers.Result{}, reconcilers.ErrHaltSubReconcilers)),
			ExpectStatusUpdates: observed(7),
		},
		"failure": {
			Metadata: reconciling(setField(reconcilers.Result{}, errTest)), ExpectStatusUpdates: observed(3), ShouldErr: true,
			Verify: failsWith(errTest),
		},
		"quiet failure": {Metadata: reconciling(setField(reconcilers.Result{}, errQuiet)), ExpectStatusUpdates: observed(3)},
	}, func(_ string, tc *rtesting.ReconcilerTestCase) {
		given := newResource(settled, func(r *fixture.Resource) { r.Generation, r.Status.ObservedGeneration = 7, 3 })
		tc.Request, tc.GivenObjects, tc.StatusSubResourceTypes, tc.ExpectEvents =
			testRequest, objects{given}, hasStatus, statusUpdated
	}).Run(t, scheme, resourceFactory)
}

func TestResourceReconciler_WritesOnlyChangesOfTheStatus(t *testing.T) {
	rtesting.ReconcilerTests{
		"a condition that differs only in its time has not changed": {
			Request: testRequest, GivenObjects: objects{newResource(settled)}, StatusSubResourceTypes: hasStatus,
			Metadata: syncing(func(_ context.Context, r *fixture.Resource) {
				r.Status.Conditions[0].LastTransitionTime = metav1.NewTime(longAgo.Add(time.Hour))
			}),
		},
		"defaults are not written": {
			Request: testRequest, GivenObjects: objects{newResource()}, StatusSubResourceTypes: hasStatus,
			Metadata: syncing(func(ctx context.Context, r *fixture.Resource) {
				equal(t, "defaulted field", "ran", r.Spec.Fields[fixture.DefaulterField])
				equal(t, "reason of the initialized condition", "Initializing", r.Status.GetCondition("Ready").Reason)
				r.Status.MarkReady(ctx)
			}),
			ExpectStatusUpdates: objects{newResource(settled, func(r *fixture.Resource) { r.Status.MarkReady(t.Context()) })},
			ExpectEvents:        statusUpdated,
		},
	}.Run(t, scheme, resourceFactory)
}

func TestResourceReconciler_ReturnsTheErrorAfterAStatusWrite(t *testing.T) {
	tc := rtesting.ReconcilerTestCase{
		Request: testRequest, GivenObjects: objects{newResource(settled)}, StatusSubResourceTypes: hasStatus,
		Metadata: reconciling(setField(reconcilers.Result{}, errTest)),
		ExpectStatusUpdates: objects{
			newResource(settled, ran),
		}, ExpectEvents: statusUpdated, ShouldErr: true, Verify: failsWith(errTest),
	}
	tc.Run(t, scheme, resourceFactory)
}

func TestResourceReconciler_IgnoresTheStatusOfADeletedResource(t *testing.T) {
	notFound := apierrs.NewNotFound(schema.GroupResource{Resource: "Resource"}, "test")
	rtesting.ReconcilerTests{
		"no finalizers": {
			Request: testRequest, StatusSubResourceTypes: hasStatus,
			GivenObjects: objects{newResource(finalizer("test-finalizer"), terminating, settled)},
			Metadata: changes(func(r *resourceReconciler) {
				r.SyncStatusDuringFinalization = true
				r.Reconciler = &reconcilers.WithFinalizer[*fixture.Resource]{
					Finalizer: "test-finalizer", Reconciler: setField(reconcilers.Result{}, nil),
				}
			}),
			ExpectPatches:       patches{finalizers()},
			ExpectEvents:        events{normal("FinalizerPatched", `Patched finalizer "test-finalizer"`)},
			ExpectStatusUpdates: objects{newResource(settled, ran)},
		},
		"finalizers": {
			Request: testRequest, GivenObjects: objects{newResource(settled)}, StatusSubResourceTypes: hasStatus,
			WithReactors:        failing("update", "Resource/status", notFound),
			Metadata:            reconciling(setField(reconcilers.Result{}, nil)),
			ExpectStatusUpdates: objects{newResource(settled, ran)},
			ExpectEvents:        events{warning("StatusUpdateFailed", "Failed to update status: "+notFound.Error())},
			ShouldErr:           true, Verify: failsWith(notFound),
		},
	}.Run(t, scheme, resourceFactory)
}

// In a controller, an event for a status write repeats the status. An event for a failure is needed.
func TestResourceReconciler_StatusEvents(t *testing.T) {
	duck := func(w *world, asked bool) func(managed bool) error {
		r := &reconcilers.ResourceReconciler[*fixture.Duck]{
			Type: fixture.NewDuck("", ""), Config: w.Config, StatusEvents: asked,
			Reconciler: &reconcilers.SyncReconciler[*fixture.Duck]{Sync: func(_ context.Context, duck *fixture.Duck) error {
				duck.Status.Fields = map[string]string{"a": "b"}
				return nil
			}},
		}
		return either(r.Reconcile, r.ReconcileManaged)
	}
	typed := func(w *world, asked bool) func(managed bool) error {
		r := &resourceReconciler{Config: w.Config, StatusEvents: asked, Reconciler: nothing()}
		return either(r.Reconcile, r.ReconcileManaged)
	}
	for name, kind := range map[string]struct {
		build         func(w *world, asked bool) func(managed bool) error
		write         string
		event, failed string
	}{
		"typed": {
			typed, "update Resource/status", "event default/test Normal StatusUpdated",
			"event default/test Warning StatusUpdateFailed",
		},
		"duck": {
			duck, "patch Resource/status", "event default/test Normal StatusPatched",
			"event default/test Warning StatusPatchFailed",
		},
	} {
		for _, tc := range []struct {
			name           string
			asked, managed bool
			want           int
		}{
			{"controller", false, true, 0},
			{"controller, asked for", true, true, 1},
			{"called directly", false, false, 1},
			{"called directly, asked for", true, false, 1},
		} {
			t.Run(name+"/"+tc.name, func(t *testing.T) {
				w := newWorld(t, newResource())
				reconcile := kind.build(w, tc.asked)
				w.Fail(kind.write, errTest)
				wantErr(t, errTest, reconcile(tc.managed))
				equal(t, "events of the failure", 1, w.Count(kind.failed))
				w.Heal()
				w.Trace()

				wantErr(t, nil, reconcile(tc.managed))
				equal(t, "writes", 1, w.Count(kind.write))
				equal(t, "events", tc.want, w.Count(kind.event))
			})
		}
	}
}

// either calls a root reconciler for the test resource, like a test or like a controller.
func either(
	direct, managed func(context.Context, reconcilers.Request) (reconcilers.Result, error),
) func(asManaged bool) error {
	return func(asManaged bool) error {
		call := direct
		if asManaged {
			call = managed
		}
		_, err := call(context.Background(), testRequest)
		return err
	}
}

func TestResourceReconciler_TransitionTimesMoveWithTheStatus(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	later := metav1.NewTime(now).Rfc3339Copy()
	conditions := apis.NewLivingConditionSet("Published")
	manage := func(ctx context.Context, r *fixture.Resource) apis.ConditionManager {
		return conditions.ManageWithContext(ctx, &r.Status)
	}
	// given is the resource before the reconcile. times are the transition times of its conditions afterwards.
	given := func(published, ready metav1.Time, changes ...func(*fixture.Resource)) objects {
		return objects{newResource(append([]func(*fixture.Resource){settled, func(r *fixture.Resource) {
			r.Status.Conditions[0].LastTransitionTime = ready
			r.Status.Conditions = append([]metav1.Condition{{
				Type: "Published", Status: metav1.ConditionUnknown, Reason: "Initializing", LastTransitionTime: published,
			}}, r.Status.Conditions...)
		}}, changes...)...)}
	}
	both := func(status metav1.ConditionStatus, reason, message string) func(*fixture.Resource) {
		return func(r *fixture.Resource) {
			for i := range r.Status.Conditions {
				c := &r.Status.Conditions[i]
				c.Status, c.Reason, c.Message = status, reason, message
			}
		}
	}
	inAll(rtesting.ReconcilerTests{
		// A new status is a transition.
		"another status": {
			Metadata: syncing(func(ctx context.Context, r *fixture.Resource) {
				manage(ctx, r).MarkTrue("Published", "Done", "")
			}),
			ExpectStatusUpdates: given(later, later, both(metav1.ConditionTrue, "Done", ""), func(r *fixture.Resource) {
				r.Status.Conditions[1].Reason = "Ready"
			}),
		},
		// A new reason is not a transition.
		"another reason": {
			Metadata: syncing(func(ctx context.Context, r *fixture.Resource) {
				manage(ctx, r).MarkUnknown("Published", "Waiting", "for it")
			}),
			ExpectStatusUpdates: given(longAgo, longAgo, both(metav1.ConditionUnknown, "Waiting", "for it")),
		},
		// A time that the user sets is ignored.
		"another reason, by hand": {
			Metadata: syncing(func(_ context.Context, r *fixture.Resource) {
				for i := range r.Status.Conditions {
					r.Status.Conditions[i].Message = "changed"
					r.Status.Conditions[i].LastTransitionTime = later
				}
			}),
			ExpectStatusUpdates: given(longAgo, longAgo, both(metav1.ConditionUnknown, "Initializing", "changed")),
		},
		// The user sets the time of a transition.
		"another status, by hand": {
			Metadata: syncing(func(_ context.Context, r *fixture.Resource) {
				r.Status.Conditions[0].Status = metav1.ConditionFalse
				r.Status.Conditions[0].LastTransitionTime = later
			}),
			ExpectStatusUpdates: given(later, longAgo, func(r *fixture.Resource) {
				r.Status.Conditions[0].Status = metav1.ConditionFalse
			}),
		},
		// A new condition has no time to keep.
		"a new condition": {
			Metadata: syncing(func(ctx context.Context, r *fixture.Resource) {
				manage(ctx, r).SetCondition(metav1.Condition{Type: "Added", Status: metav1.ConditionUnknown, Reason: "New"})
			}),
			ExpectStatusUpdates: given(longAgo, longAgo, func(r *fixture.Resource) {
				r.Status.Conditions = append([]metav1.Condition{{
					Type: "Added", Status: metav1.ConditionUnknown, Reason: "New", LastTransitionTime: later,
				}}, r.Status.Conditions...)
			}),
		},
		// A status that changes back during the reconcile is not a transition.
		"changed back": {
			Metadata: syncing(func(ctx context.Context, r *fixture.Resource) {
				manage(ctx, r).MarkFalse("Published", "Oops", "")
				manage(ctx, r).MarkUnknown("Published", "Waiting", "again")
			}),
			ExpectStatusUpdates: given(longAgo, longAgo, both(metav1.ConditionUnknown, "Waiting", "again")),
		},
	}, func(_ string, tc *rtesting.ReconcilerTestCase) {
		tc.Request, tc.GivenObjects, tc.StatusSubResourceTypes = testRequest, given(longAgo, longAgo), hasStatus
		tc.Now, tc.Differ, tc.ExpectEvents = now, transitionTimes{rtesting.DefaultDiffer}, statusUpdated
	}).Run(t, scheme, resourceFactory)
}

// transitionTimes compares the transition times of conditions.
type transitionTimes struct{ rtesting.Differ }

func (transitionTimes) ResourceStatusUpdate(expected, actual client.Object) string {
	return cmp.Diff(expected.(*fixture.Resource).Status, actual.(*fixture.Resource).Status)
}

// TestResourceReconciler_ConditionsHaveObservedGeneration reconciles a resource of generation 7 that was reconciled at
// generation 3.
func TestResourceReconciler_ConditionsHaveObservedGeneration(t *testing.T) {
	set := apis.NewLivingConditionSet("Published")
	condition := func(kind string, generation int64) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: generation,
			LastTransitionTime: longAgo,
		}
	}
	// observed returns the resource with an observed generation and conditions.
	observed := func(generation int64, conditions ...metav1.Condition) *fixture.Resource {
		return newResource(func(r *fixture.Resource) {
			r.Generation, r.Status.ObservedGeneration, r.Status.Conditions = 7, generation, conditions
		})
	}
	steady := func(published, ready int64) []metav1.Condition {
		return []metav1.Condition{condition("Published", published), condition("Ready", ready)}
	}
	confirm := func(ctx context.Context, r *fixture.Resource) {
		set.ManageWithContext(ctx, &r.Status).MarkTrue("Published", "Ready", "")
	}
	foreign := metav1.Condition{Type: "Billed", Status: metav1.ConditionTrue, Reason: "Paid", LastTransitionTime: longAgo}

	cases := map[string]struct {
		reason string
		given  *fixture.Resource
		sync   func(context.Context, *fixture.Resource)
		err    error
		want   *fixture.Resource // nil means that nothing is written
		direct bool
	}{
		"set again": {
			reason: "a condition that is set again is up to date",
			given:  observed(3, steady(3, 3)...), sync: confirm, want: observed(7, steady(7, 7)...),
		},
		"set again, without a generation": {
			reason: "conditions of an earlier version get a generation",
			given:  observed(7, steady(0, 0)...), sync: confirm, want: observed(7, steady(7, 7)...),
		},
		"up to date": {
			reason: "each generation causes one write",
			given:  observed(7, steady(7, 7)...), sync: confirm,
		},
		"not set": {
			reason: "conditions that InitializeConditions manages are up to date after all steps have run, others are not",
			given:  observed(3, steady(3, 3)...), sync: func(
				context.Context, *fixture.Resource,
			) {
			}, want: observed(7, steady(3, 7)...),
		},
		"not set, and a failure": {
			reason: "a step that did not run has not observed the generation",
			given:  observed(3, steady(3, 3)...), sync: func(context.Context, *fixture.Resource) {}, err: errTest,
		},
		"set by the user, initialized condition": {
			reason: "a generation that the user sets is kept",
			given:  observed(7, steady(7, 5)...),
			sync: func(ctx context.Context, r *fixture.Resource) {
				set.ManageWithContext(ctx, &r.Status).SetCondition(condition("Ready", 5))
			},
		},
		"of another writer": {
			reason: "conditions of other writers are not changed",
			given:  observed(3, append([]metav1.Condition{foreign}, steady(3, 3)...)...), sync: confirm,
			want: observed(7, append([]metav1.Condition{foreign}, steady(7, 7)...)...),
		},
		"failure": {
			reason: "a condition that was set before something failed says what it was computed from; the status as a whole " +
				"does not",
			given: observed(3, steady(3, 3)...), sync: confirm, err: errTest, want: observed(3, steady(7, 7)...),
		},
		"without context": {
			reason: "every way to set a condition is detected",
			given:  observed(3, steady(3, 3)...),
			sync: func(_ context.Context, r *fixture.Resource) {
				set.ManageWithContext(context.Background(), &r.Status).MarkTrue("Published", "Ready", "")
			},
			want: observed(7, steady(7, 7)...),
		},
		"by apimachinery": {
			reason: "every way to set a condition is detected",
			given:  observed(3, steady(3, 3)...),
			sync: func(_ context.Context, r *fixture.Resource) {
				meta.SetStatusCondition(&r.Status.Conditions, condition("Published", 0))
				meta.SetStatusCondition(&r.Status.Conditions, condition("Added", 0))
			},
			want: observed(7, condition("Published", 7), condition("Ready", 7), condition("Added", 7)),
		},
		"changed in place": {
			reason: "a condition with a new message has changed",
			given:  observed(3, steady(3, 3)...),
			sync:   func(_ context.Context, r *fixture.Resource) { r.Status.Conditions[1].Message = "so far" },
			want: observed(7, condition("Published", 3), func() metav1.Condition {
				c := condition("Ready", 7)
				c.Message = "so far"
				return c
			}()),
		},
		"set by the user": {
			reason: "a generation that the user sets is kept",
			given:  observed(3, steady(3, 3)...),
			sync: func(ctx context.Context, r *fixture.Resource) {
				set.ManageWithContext(ctx, &r.Status).SetCondition(condition("Published", 5))
			},
			want: observed(7, steady(5, 7)...),
		},
		"of another object": {
			reason: "a condition of another object does not have this generation",
			given:  observed(7, steady(7, 7)...),
			sync: func(ctx context.Context, _ *fixture.Resource) {
				other := observed(0)
				confirm(ctx, other)
				equal(
					t, "observedGeneration of a condition of another object", int64(0), other.Status.Conditions[0].ObservedGeneration,
				)
			},
		},
		"initialized": {
			reason: "initialized conditions have this generation",
			given:  observed(3), sync: func(context.Context, *fixture.Resource) {},
			want: observed(7, metav1.Condition{
				Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Initializing", ObservedGeneration: 7,
			}),
		},
		"no generation": {
			reason: "a resource without a generation has no generation to observe",
			given: newResource(func(r *fixture.Resource) {
				r.Generation, r.Status.Conditions = 0, steady(0, 0)
			}), sync: confirm,
		},
		"called directly": {
			reason: "users' tests compare conditions without a generation", direct: true,
			given: observed(3, steady(0, 0)...), sync: confirm, want: observed(7, steady(0, 0)...),
		},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			tc := rtesting.ReconcilerTestCase{
				Request: testRequest, GivenObjects: objects{tt.given}, StatusSubResourceTypes: hasStatus,
				Metadata: reconciling(&syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
					tt.sync(ctx, r)
					return tt.err
				}}),
			}
			if tt.want != nil {
				tc.ExpectStatusUpdates = objects{tt.want}
				if tt.direct {
					tc.ExpectEvents = statusUpdated
				}
			}
			if tt.err != nil {
				tc.ShouldErr, tc.Verify = true, failsWith(tt.err)
				tc.ExpectEvents = events{warning("ReconcileFailed", "ResourceResourceReconciler.SyncReconciler: "+tt.err.Error())}
			}
			t.Log(tt.reason)
			tc.Run(t, scheme, func(t *testing.T, tc *rtesting.ReconcilerTestCase, c reconcilers.Config) root {
				r := resourceFactory(t, tc, c).(*resourceReconciler)
				if tt.direct {
					return r
				}
				return ctrlreconcile.Func(r.ReconcileManaged)
			})
		})
	}
}

// Is a change of the spec lost in silence? Only the status is written.
func TestResourceReconciler_WhatIsChangedInMemoryOnly(t *testing.T) {
	write := func(ctx context.Context, r *fixture.Resource) error {
		return reconcilers.RetrieveConfigOrDie(ctx).Update(ctx, r)
	}
	for name, tc := range map[string]struct {
		sync func(ctx context.Context, r *fixture.Resource) error
		want []string
	}{
		"nothing":    {sync: func(context.Context, *fixture.Resource) error { return nil }},
		"the status": {sync: func(ctx context.Context, r *fixture.Resource) error { r.Status.MarkReady(ctx); return nil }},
		"the spec": {
			sync: func(_ context.Context, r *fixture.Resource) error {
				r.Spec.Fields["value"] = "changed"
				return nil
			},
			want: []string{`["spec.fields[value]"]`},
		},
		"a label, before an error": {
			sync: func(_ context.Context, r *fixture.Resource) error {
				r.Labels = map[string]string{"a": "b"}
				return errTest
			},
			want: []string{`["metadata.labels[a]"]`},
		},
		"a finalizer": {sync: func(ctx context.Context, r *fixture.Resource) error {
			return reconcilers.AddFinalizer(ctx, r, "test-finalizer")
		}},
		"the spec, written": {sync: func(ctx context.Context, r *fixture.Resource) error {
			r.Spec.Fields["value"] = "changed"
			return write(ctx, r)
		}},
		"a label, written": {sync: func(ctx context.Context, r *fixture.Resource) error {
			r.Labels = map[string]string{"a": "b"}
			return write(ctx, r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled, specField("value", "given"), func(r *fixture.Resource) { r.UID = "uid" }))
			logged := []string{}
			ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) {
				if _, fields, found := strings.Cut(args, `"fields"=`); found && strings.Contains(args, "in memory only") {
					logged = append(logged, fields)
				}
			}, funcr.Options{}))
			root := &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{Sync: tc.sync}}
			for range 3 {
				_, _ = root.ReconcileManaged(ctx, testRequest)
			}
			if diff := cmp.Diff(fmt.Sprint(tc.want), fmt.Sprint(logged)); diff != "" {
				t.Errorf("unexpected log lines (-want +got):\n%s", diff)
			}
		})
	}
}
