// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// An app whose only report is its ErrorHandler must see that its objects are not handled.
func TestOpinionated_FinalizerThatCannotBeAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newOpinionated(t, version("a", 1, 1))
		var attempts, reports []string
		b.Handler.RetryPolicy = func(err error, attempt int) (bool, time.Duration) {
			attempts = append(attempts, fmt.Sprint(attempt, " ", apierrs.IsForbidden(err)))
			return attempt < 2, time.Minute
		}
		b.Handler.OnError = func(_ context.Context, resource *fixture.Resource, err error) {
			var failed operator.FinalizerError
			var status apierrs.APIStatus
			if !errors.As(err, &failed) || !errors.As(err, &status) {
				t.Fatalf("error = %v, want one of a finalizer", err)
			}
			reports = append(reports, fmt.Sprint(resource.Name, " ", status.Status().Code, " ", failed.PatchRequest()))
		}
		b.Handler.OnExhausted = func(context.Context, *fixture.Resource, error) { reports = append(reports, "exhausted") }
		b.fail = func(line string) error {
			if strings.Contains(line, "finalizers") {
				return apierrs.NewForbidden(resources, "test", errTest)
			}
			return nil
		}
		for range 2 {
			for range 2 { // the second request comes too early
				result, err := b.request()
				wantErr(t, err)
				equal(t, "result", reconcilers.Result{RequeueAfter: time.Minute}, result)
			}
			time.Sleep(time.Minute)
		}
		_, err := b.request()
		if !apierrs.IsForbidden(err) {
			t.Errorf("error = %v, want the refusal", err)
		}
		b.want(t) // the handler is not called without its finalizer
		equal(t, "attempts", []string{"0 true", "1 true", "2 true"}, attempts)
		report := fmt.Sprint("test 403 ", resource.PatchRequest{Operations: []resource.PatchOperation{
			{Path: "/metadata/finalizers", Operation: resource.PatchOpAdd, Value: []string{testFinalizer}},
			{Path: "/metadata/resourceVersion", Operation: resource.PatchOpReplace, Value: "1"},
		}})
		equal(t, "reports", []string{report, report, report, "exhausted"}, reports)
	})
}

// A resource whose finalizer could not be added was never handled, so its deletion is not handled either.
func TestOpinionated_FinalizerThatIsAddedLate(t *testing.T) {
	for name, then := range map[string]func(b *opinionatedBench) []string{
		"the finalizer is added": func(b *opinionatedBench) []string {
			b.fail = nil
			_, err := b.request()
			wantErr(b.t, err)
			return []string{"Created a 1"}
		},
		"the resource is deleted": func(b *opinionatedBench) []string {
			wantErr(b.t, b.server.Delete(b.t.Context(), b.stored()))
			_, err := b.request()
			wantErr(b.t, err)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newOpinionated(t, version("a", 1, 1))
				b.Handler.RetryPolicy = every(time.Minute)
				b.fail = func(string) error { return errTest }
				_, err := b.request()
				wantErr(t, err)
				time.Sleep(time.Minute)
				b.want(t, then(b)...)
			})
		})
	}
}

func TestOpinionated_ReportsFinalizersThatCannotBeWritten(t *testing.T) {
	invalid := func(name string) error {
		return apierrs.NewInvalid(schema.GroupKind{}, "test", field.ErrorList{
			field.Invalid(field.NewPath("metadata", name), "it", "on purpose"),
		})
	}
	for name, tc := range map[string]struct {
		given   *fixture.Resource
		refusal error
		want    int // reports
	}{
		"removed": {version("a", 2, 1, with(testFinalizer), deleting), errTest, 1},
		"removed, conflict": {
			version("a", 2, 1, with(testFinalizer), deleting), apierrs.NewConflict(resources, "test", nil), 0,
		},
		"added":                             {version("a", 1, 1), errTest, 1},
		"added, a name that is not allowed": {version("a", 1, 1), invalid("finalizers"), 1},
		"added, another object":             {version("a", 1, 1), invalid("uid"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			b, reports := newOpinionated(t, tc.given), 0
			b.Handler.OnError = func(_ context.Context, _ *fixture.Resource, err error) {
				var failed *operator.FinalizerOperationError
				if !errors.As(err, &failed) || !errors.Is(err, tc.refusal) {
					t.Errorf("error = %v", err)
				}
				reports++
			}
			b.fail = func(line string) error {
				if strings.Contains(line, "finalizers") {
					return tc.refusal
				}
				return nil
			}
			_, err := b.Reconcile(b.context(), tc.given)
			wantErr(t, err, tc.refusal)
			equal(t, "reports", tc.want, reports)
		})
	}
	// A finalizer that another client removed is added again after the resource was handled.
	b, reports := newOpinionated(t, version("a", 1, 1)), 0
	_, err := b.request()
	wantErr(t, err)
	stored := b.stored()
	stored.Finalizers = nil
	wantErr(t, b.server.Update(t.Context(), stored))
	b.Handler.OnError = func(context.Context, *fixture.Resource, error) { reports++ }
	b.fail = func(string) error { return errTest }
	_, err = b.request()
	wantErr(t, err, errTest)
	equal(t, "reports", 1, reports)
	b.want(t, "Created a 1")
}

func TestFinalizerOperationError_Status(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		code int32
		text string
	}{
		"response of the API server": {
			apierrs.NewForbidden(resources, "test", errTest), http.StatusForbidden,
			`unable to write finalizers: resources "test" is forbidden: failure of the test`,
		},
		"no response": {errTest, http.StatusInternalServerError, "unable to write finalizers: failure of the test"},
		"no error":    {nil, http.StatusInternalServerError, "unable to write finalizers"},
	} {
		t.Run(name, func(t *testing.T) {
			err := operator.NewFinalizerOperationError(tc.err, resource.PatchRequest{})
			equal(t, "code", tc.code, err.Status().Code)
			equal(t, "text", tc.text, err.Error())
		})
	}
}
