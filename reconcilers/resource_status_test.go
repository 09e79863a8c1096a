// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

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
