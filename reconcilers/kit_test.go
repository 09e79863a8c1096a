// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// scheme is the scheme of all tables.
var scheme = fixture.NewScheme()

// root is the type that tables of root reconcilers test.
type root = ctrlreconcile.Reconciler

// Types for cases of subreconcilers of the resource that newResource returns.
type (
	subReconcilerTests = rtesting.SubReconcilerTests[*fixture.Resource]
	subReconcilerCase  = rtesting.SubReconcilerTestCase[*fixture.Resource]
)

type (
	objects = []client.Object
	events  = []rtesting.Event
	patches = []rtesting.PatchRef
)

// Values that many cases share.
var (
	hasStatus        = objects{&fixture.Resource{}}
	statusUpdated    = events{normal("StatusUpdated", "Updated status")}
	finalizerPatched = normal("FinalizerPatched", `Patched finalizer "test-finalizer"`)
	finalizerFailed  = warning("FinalizerPatchFailed", `Failed to patch finalizer "test-finalizer": failure of the test`)
	createdChild     = eventFor("Created", "child")
	updatedChild     = eventFor("Updated", "child")
	deletedChild     = eventFor("Deleted", "child")
)

// normal and warning return events about the resource.
func normal(reason, message string) rtesting.Event {
	return rtesting.NewEvent(newResource(), scheme, corev1.EventTypeNormal, reason, "%s", message)
}

func warning(reason, message string) rtesting.Event {
	return rtesting.NewEvent(newResource(), scheme, corev1.EventTypeWarning, reason, "%s", message)
}

// finalizers returns the patch that sets the finalizers of the resource to names.
func finalizers(names ...string) rtesting.PatchRef {
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": names, "resourceVersion": "999"}})
	return rtesting.PatchRef{
		Group: fixture.GroupVersion.Group, Kind: "Resource", Namespace: "default", Name: "test",
		PatchType: types.MergePatchType, Patch: patch,
	}
}

// failsWith verifies the error and the result. The expected result is empty by default.
func failsWith(want error, result ...reconcilers.Result) rtesting.VerifyFunc {
	return func(t *testing.T, got reconcilers.Result, err error) {
		t.Helper()
		wantErr(t, want, err)
		equal(t, "result of a failure", append(result[:len(result):len(result)], reconcilers.Result{})[0], got)
	}
}

// failsWithText verifies the text of an error.
func failsWithText(want string) rtesting.VerifyFunc {
	return func(t *testing.T, _ reconcilers.Result, err error) {
		t.Helper()
		wantText(t, want, err)
	}
}

// changes returns the Metadata of a case that changes its reconciler. The factory must call changed.
func changes[R any](change ...func(*R)) map[string]any { return map[string]any{"changes": change} }

// changed applies the changes of a case to its reconciler.
func changed[R any](r *R, metadata map[string]any) *R {
	if changes, ok := metadata["changes"]; ok {
		for _, change := range changes.([]func(*R)) {
			change(r)
		}
	}
	return r
}

// inAll returns the table with an edit of each case.
func inAll[Table ~map[string]Case, Case any](table Table, edit func(name string, tc *Case)) Table {
	for name, tc := range table {
		edit(name, &tc)
		table[name] = tc
	}
	return table
}

// failing returns the WithReactors of a case in which a verb fails for a kind.
func failing(verb, kind string, err error) []rtesting.ReactionFunc {
	return []rtesting.ReactionFunc{rtesting.InduceFailure(verb, kind, rtesting.InduceFailureOpts{Error: err})}
}

// atMostOnce fails a kind of call after the first call. It does nothing for a config that only records wiring.
func atMostOnce(c reconcilers.Config, verb, kind string) {
	if client, ok := c.Client.(rtesting.TestClient); ok {
		client.AddReactor(verb, kind, rtesting.CalledAtMostTimes(verb, kind, 1))
	}
}

// outcome returns the case of a subreconciler with the given result, error and notes. It requires the factory
// fromCase.
func outcome(r subReconciler, want reconcilers.Result, err error, notes ...string) subReconcilerCase {
	return subReconcilerCase{
		Metadata: map[string]any{"reconciler": r}, Resource: newResource(), Differ: exactly{rtesting.DefaultDiffer},
		ExpectEvents: noted(notes...), ShouldErr: err != nil, ExpectedResult: want,
		// The kit ignores the result of a failure, and Requeue if RequeueAfter is set.
		Verify: failsWith(err, want),
	}
}

func fromCase(_ *testing.T, tc *subReconcilerCase, _ reconcilers.Config) subReconciler {
	return tc.Metadata["reconciler"].(subReconciler)
}

// exactly compares all fields of resources, including the kind.
type exactly struct{ rtesting.Differ }

func (exactly) Resource(want, got client.Object) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

// note records an event, so that cases can expect calls in order.
func note(ctx context.Context, r *fixture.Resource, format string, args ...any) {
	reconcilers.RetrieveConfigOrDie(ctx).Recorder.Eventf(r, corev1.EventTypeNormal, "Noted", format, args...)
}

func noted(notes ...string) (noted events) {
	for _, what := range notes {
		noted = append(noted, normal("Noted", what))
	}
	return noted
}

// noting returns a subreconciler that records a note and then returns.
func noting(what string, result reconcilers.Result, err error) *syncReconciler {
	call := func(ctx context.Context, r *fixture.Resource) (reconcilers.Result, error) {
		note(ctx, r, "%s", what)
		return result, err
	}
	return &syncReconciler{SyncWithResult: call, FinalizeWithResult: call}
}

// logging returns the case with a check that it logs these messages.
func logging(tc subReconcilerCase, messages ...string) subReconcilerCase {
	tc.Prepare = func(_ *testing.T, ctx context.Context, tc *subReconcilerCase) (context.Context, error) {
		log, lines := newLog(0)
		tc.CleanUp = func(t *testing.T, _ context.Context, _ *subReconcilerCase) error {
			equal(t, "log", messages, lines.messages())
			return nil
		}
		return withLog(ctx, log), nil
	}
	return tc
}

// making returns the case with the expectation that it makes these changes to the resource.
func making(tc subReconcilerCase, changes ...func(*fixture.Resource)) subReconcilerCase {
	tc.ExpectResource = rtesting.With(tc.Resource, changes...)
	return tc
}
