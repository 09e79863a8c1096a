// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// runKind runs a case with a reconciler for resources of another Go type. It sets the kind if the type does not define
// it.
func runKind[T client.Object](
	t *testing.T, name string, sync func(T) error, tc rtesting.ReconcilerTestCase, kind ...T,
) {
	t.Helper()
	tc.Name, tc.Request = name, testRequest
	rtesting.ReconcilerTestSuite{tc}.Run(t, scheme, func(
		_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config,
	) root {
		r := &reconcilers.ResourceReconciler[T]{Config: c, Reconciler: &reconcilers.SyncReconciler[T]{
			Sync: func(_ context.Context, resource T) error { return sync(resource) },
		}}
		if len(kind) > 0 {
			r.Type = kind[0]
		}
		return r
	})
}

func TestResourceReconciler_StylesOfDefaulting(t *testing.T) {
	meta := newResource().ObjectMeta
	testDefaulting(t, "Default(ctx) error", true, &fixture.Resource{ObjectMeta: meta},
		func(r *fixture.Resource) (*fixture.ResourceSpec, *fixture.ResourceStatus) { return &r.Spec, &r.Status })
	testDefaulting(t, "Default(ctx, T) error", true, &fixture.ResourceAdmissionDefault{ObjectMeta: meta},
		func(r *fixture.ResourceAdmissionDefault) (*fixture.ResourceSpec, *fixture.ResourceStatus) {
			return &r.Spec, &r.Status
		})
	testDefaulting(t, "Default(ctx, runtime.Object) error", true, &fixture.ResourceObjectDefault{ObjectMeta: meta},
		func(r *fixture.ResourceObjectDefault) (*fixture.ResourceSpec, *fixture.ResourceStatus) {
			return &r.Spec, &r.Status
		})
	testDefaulting(t, "Default()", false, &fixture.ResourceLegacyDefault{ObjectMeta: meta},
		func(r *fixture.ResourceLegacyDefault) (*fixture.ResourceSpec, *fixture.ResourceStatus) {
			return &r.Spec, &r.Status
		})
}

// testDefaulting checks that a reconciler sees the defaulted field.
func testDefaulting[T client.Object](
	t *testing.T, style string, canFail bool, kind T, parts func(T) (*fixture.ResourceSpec, *fixture.ResourceStatus),
) {
	show := func(resource T) error {
		spec, status := parts(resource)
		status.Fields = map[string]string{"default": spec.Fields[fixture.DefaulterField]}
		return nil
	}
	written, failing := kind.DeepCopyObject().(T), kind.DeepCopyObject().(T)
	_, status := parts(written)
	*status = newResource(settled, func(r *fixture.Resource) {
		r.Status.Fields = map[string]string{"default": "ran"}
	}).Status
	runKind(t, style, show, statusCase(kind, written))
	if spec, _ := parts(failing); canFail {
		spec.Fields = map[string]string{fixture.DefaulterField: "fail"}
		runKind(t, style+" that fails", show, rtesting.ReconcilerTestCase{
			GivenObjects: objects{failing}, ShouldErr: true, Verify: failsWith(fixture.ErrDefault),
		})
	}
}

func TestResourceReconciler_KindsOfStatus(t *testing.T) {
	meta, fields := newResource().ObjectMeta, map[string]string{"Reconciler": "ran"}
	initialized, changed := newResource(settled).Status, newResource(ran).Status
	changed.ObservedGeneration = 1

	runKind(t, "none", func(r *fixture.ResourceNoStatus) error {
		r.Spec.Fields = map[string]string{"changed": "in memory"}
		return errQuiet
	}, rtesting.ReconcilerTestCase{
		GivenObjects: objects{&fixture.ResourceNoStatus{ObjectMeta: meta}}, ExpectedResult: requeue,
	})
	runKind(t, "nil", func(r *fixture.ResourceNilableStatus) error {
		equal(t, "status: a nil status is left nil", nil, r.Status)
		return nil
	}, statusCase(&fixture.ResourceNilableStatus{ObjectMeta: meta}, nil))
	runKind(t, "was nil", func(r *fixture.ResourceNilableStatus) error {
		r.Status = &fixture.ResourceStatus{Fields: fields}
		return nil
	}, statusCase(&fixture.ResourceNilableStatus{ObjectMeta: meta}, &fixture.ResourceNilableStatus{
		ObjectMeta: meta, Status: &changed,
	}))
	runKind(t, "pointer", func(*fixture.ResourceNilableStatus) error { return nil }, statusCase(
		&fixture.ResourceNilableStatus{ObjectMeta: meta, Status: &fixture.ResourceStatus{}},
		&fixture.ResourceNilableStatus{ObjectMeta: meta, Status: &initialized},
	))
	runKind(t, "empty", func(r *fixture.ResourceEmptyStatus) error {
		r.Status.Fields = fields
		return nil
	}, statusCase(
		&fixture.ResourceEmptyStatus{ObjectMeta: meta}, &fixture.ResourceEmptyStatus{
			ObjectMeta: meta, Status: fixture.EmptyStatus{Fields: fields},
		},
	))
	runKind(t, "initialized without a context", func(*fixture.ResourceLegacyConditions) error { return nil }, statusCase(
		&fixture.ResourceLegacyConditions{ObjectMeta: meta},
		&fixture.ResourceLegacyConditions{
			ObjectMeta: meta, Status: fixture.LegacyConditionsStatus{Status: initialized.Status},
		},
	))
	// Unstructured objects contain all fields, so they are updated.
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(fixture.GroupVersion.WithKind("Resource"))
	written := kind.DeepCopy()
	written.SetNamespace("default")
	written.SetName("test")
	wantErr(t, nil, unstructured.SetNestedField(written.Object, "ran", "status", "fields", "Reconciler"))
	runKind(t, "unstructured", func(r *unstructured.Unstructured) error {
		return unstructured.SetNestedField(r.Object, "ran", "status", "fields", "Reconciler")
	}, statusCase(newResource(), written), kind)
}

// statusCase returns a case in which the status is written unless written is nil.
func statusCase(given, written client.Object) rtesting.ReconcilerTestCase {
	tc := rtesting.ReconcilerTestCase{GivenObjects: objects{given}, StatusSubResourceTypes: objects{given}}
	if written != nil {
		tc.ExpectStatusUpdates = objects{written}
		tc.ExpectEvents = events{rtesting.NewEvent(given, scheme, corev1.EventTypeNormal, "StatusUpdated", "Updated status")}
	}
	return tc
}

func TestResourceReconciler_Duck(t *testing.T) {
	given := newResource(func(r *fixture.Resource) { r.Generation = 0 })
	change := func(d *fixture.Duck) error {
		d.Status.Fields = map[string]string{"Reconciler": "ran"}
		return nil
	}
	patches := patches{{
		Group: fixture.GroupVersion.Group, Kind: "Resource", Namespace: "default", Name: "test", SubResource: "status",
		PatchType: types.MergePatchType,
		Patch:     []byte(`{"spec":{"fields":{"Defaulter":"ran"}},"status":{"fields":{"Reconciler":"ran"}}}`),
	}}
	// A duck does not contain all fields, so it is patched.
	runKind(t, "patched", change, rtesting.ReconcilerTestCase{
		GivenObjects: objects{given}, StatusSubResourceTypes: hasStatus, ExpectStatusPatches: patches,
		ExpectEvents: events{normal("StatusPatched", "Patched status")},
	}, fixture.NewDuck("", ""))
	for name, err := range map[string]error{"patch fails": errTest, "patch conflicts": errConflict} {
		runKind(t, name, change, rtesting.ReconcilerTestCase{
			GivenObjects: objects{given}, StatusSubResourceTypes: hasStatus, WithReactors: failing(
				"patch", "Resource/status", err,
			),
			ExpectStatusPatches: patches, ExpectEvents: events{
				warning("StatusPatchFailed", "Failed to patch status: "+err.Error()),
			},
			ShouldErr: true, Verify: failsWith(err),
		}, fixture.NewDuck("", ""))
	}
	runKind(t, "defaulting fails", change, rtesting.ReconcilerTestCase{
		GivenObjects: objects{
			newResource(func(r *fixture.Resource) { r.Spec.Fields = map[string]string{fixture.DefaulterField: "fail"} }),
		},
		ShouldErr: true, Verify: failsWith(fixture.ErrDefault),
	}, fixture.NewDuck("", ""))
}
