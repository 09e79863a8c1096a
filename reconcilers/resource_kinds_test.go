// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
	"trueup.dev/validation"
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

// part is a subreconciler that counts its setups. Its Validate method returns Invalid.
type part struct {
	*syncReconciler
	Invalid error
	Setups  int
}

func (p *part) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	p.Setups++
	return nil
}

func (p *part) Validate(context.Context) error { return p.Invalid }

func TestResourceReconciler_Validate(t *testing.T) {
	for name, tc := range map[string]struct {
		reconciler *resourceReconciler
		recursive  bool
		want       string
	}{
		"valid": {
			reconciler: &resourceReconciler{Reconciler: sequence{}},
		},
		"no reconciler": {
			reconciler: &resourceReconciler{Name: "test"},
			want:       `ResourceReconciler "test" must define Reconciler`,
		},
		"no name": {
			reconciler: &resourceReconciler{},
			want:       `ResourceReconciler "ResourceResourceReconciler" must define Reconciler`,
		},
		"invalid part": {
			reconciler: &resourceReconciler{Reconciler: &part{Invalid: errTest}},
		},
		"invalid part, recursive": {
			reconciler: &resourceReconciler{Reconciler: &part{Invalid: errTest}},
			recursive:  true,
			want:       `ResourceReconciler "ResourceResourceReconciler" must have a valid Reconciler: failure of the test`,
		},
		"invalid part of a sequence used as a value, recursive": {
			reconciler: &resourceReconciler{Reconciler: sequence{&syncReconciler{}}},
			recursive:  true,
			want: `ResourceReconciler "ResourceResourceReconciler" must have a valid Reconciler: ` +
				`Sequence must have a valid Sequence[0]: SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			if tc.recursive {
				ctx = validation.WithRecursive(ctx)
			}
			wantText(t, tc.want, tc.reconciler.Validate(ctx))
		})
	}

	t.Run("all nested problems are errors", func(t *testing.T) {
		r := &resourceReconciler{Reconciler: sequence{&syncReconciler{}, &part{Invalid: errTest}}}
		wantErr(t, errTest, r.Validate(validation.WithRecursive(context.Background())))
	})
	t.Run("an interface needs a type", func(t *testing.T) {
		r := &reconcilers.ResourceReconciler[client.Object]{Name: "test", Reconciler: reconcilers.Sequence[client.Object]{}}
		wantText(t, `ResourceReconciler "test" must define Type`, r.Validate(context.Background()))
		r = &reconcilers.ResourceReconciler[client.Object]{
			Type: &fixture.Resource{}, Reconciler: reconcilers.Sequence[client.Object]{},
		}
		wantText(t, "", r.Validate(context.Background()))
	})
}

// inspector is a subreconciler whose Validate method calls a function.
type inspector struct {
	*syncReconciler
	validate func(ctx context.Context) error
}

func (i inspector) Validate(ctx context.Context) error { return i.validate(ctx) }

func TestResourceReconciler_ValidateBelowFindsTheConfig(t *testing.T) {
	w := newWorld(t)
	r := &resourceReconciler{Config: w.Config, Reconciler: inspector{validate: func(ctx context.Context) error {
		config, err := reconcilers.RetrieveConfig(ctx)
		original, oerr := reconcilers.RetrieveOriginalConfig(ctx)
		if config != w.Config || original != w.Config || reconcilers.RetrieveResourceType(ctx) == nil ||
			reconcilers.RetrieveOriginalResourceType(ctx) == nil {
			return errors.Join(errTest, err, oerr)
		}
		return nil
	}}}
	wantErr(t, nil, r.Validate(validation.WithRecursive(context.Background())))
}

func TestResourceReconciler_ValidateLogs(t *testing.T) {
	const (
		noStatus     = "resource missing status field, operations related to status will be skipped"
		nilable      = "resource status is nilable, status is typically a struct"
		noGeneration = "resource status missing ObservedGeneration field of type int64, generation will not be managed"
		noInitialize = "resource status missing InitializeConditions(context.Context) method, " +
			"conditions will not be auto-initialized"
		deprecated = "resource status InitializeConditions() method is deprecated, " +
			"use InitializeConditions(context.Context)"
		noConditions = "resource status is missing field Conditions of type []metav1.Condition, " +
			"condition timestamps will not be managed"
	)
	type validator interface{ Validate(context.Context) error }
	for name, tc := range map[string]struct {
		reconciler validator
		want       []string
	}{
		"complete": {&resourceReconciler{Reconciler: sequence{}}, nil},
		"none": {&reconcilers.ResourceReconciler[*fixture.ResourceNoStatus]{
			Reconciler: reconcilers.Sequence[*fixture.ResourceNoStatus]{},
		}, []string{noStatus}},
		"pointer": {&reconcilers.ResourceReconciler[*fixture.ResourceNilableStatus]{
			Reconciler: reconcilers.Sequence[*fixture.ResourceNilableStatus]{},
		}, []string{nilable}},
		"empty": {&reconcilers.ResourceReconciler[*fixture.ResourceEmptyStatus]{
			Reconciler: reconcilers.Sequence[*fixture.ResourceEmptyStatus]{},
		}, []string{noGeneration, noInitialize, noConditions}},
		"without a context": {&reconcilers.ResourceReconciler[*fixture.ResourceLegacyConditions]{
			Reconciler: reconcilers.Sequence[*fixture.ResourceLegacyConditions]{},
		}, []string{deprecated}},
		"invalid": {&reconcilers.ResourceReconciler[*fixture.ResourceEmptyStatus]{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			log, lines := newLog(1)
			err := tc.reconciler.Validate(withLog(context.Background(), log))
			equal(t, "invalid", name == "invalid", err != nil)
			equal(t, "messages", tc.want, lines.messages())
		})
	}
}

// checkName enables the check of controller-runtime that controller names are unique.
func checkName(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
	bldr.WithOptions(controller.Options{SkipNameValidation: new(false)})
	return nil
}

var names atomic.Int64

// unique returns a name that was not used in this process. Names of controllers cannot be released.
func unique(name string) string { return fmt.Sprintf("%s-%d", name, names.Add(1)) }

func TestRoot_NameIsTheControllerName(t *testing.T) {
	w := newWorld(t, newResource(settled))
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	config := configFor(w, mgr)
	first, second := make(requests, 10), make(requests, 10)
	resource := func(name string, calls requests) interface {
		SetupWithManager(context.Context, ctrl.Manager) error
	} {
		return &resourceReconciler{Name: name, Setup: checkName, Config: config, Reconciler: notify(calls)}
	}
	aggregate := func(name string) *aggregateReconciler {
		return newAggregate(w, func(r *aggregateReconciler) { r.Name, r.Setup, r.Config = name, checkName, config })
	}
	ctx := context.Background()
	one, two, three := unique("one"), unique("two"), unique("three")
	wantErr(t, nil, resource(one, first).SetupWithManager(ctx, mgr))
	wantErr(t, nil, resource(two, second).SetupWithManager(ctx, mgr))
	wantErr(t, nil, aggregate(three).SetupWithManager(ctx, mgr))
	for name, err := range map[string]error{
		one:   resource(one, nil).SetupWithManager(ctx, mgr),
		two:   aggregate(two).SetupWithManager(ctx, mgr),
		three: resource(three, nil).SetupWithManager(ctx, mgr),
	} {
		if err == nil {
			t.Fatalf("no error for a second controller named %s", name)
		}
		contains(t, err.Error(), "controller with name "+name+" already exists")
	}

	// Both controllers run in one manager.
	start(t, mgr)
	events.changed(newResource(settled))
	equal(t, "request", testRequest, first.next(t, "an event, for the first"))
	equal(t, "request", testRequest, second.next(t, "an event, for the second"))
	for _, name := range []string{one, two, three} {
		deadline(t, name+" is in the metrics", func() bool { return reconciles(t, name) >= 1 })
	}
}

func TestRoot_DefaultControllerNameIsTheKind(t *testing.T) {
	w := newWorld(t)
	mgr := newManager(t, w, newEventCache(w.Scheme))
	config := configFor(w, mgr)
	kind := unique("Kind")
	unnamed := func() *reconcilers.ResourceReconciler[*unstructured.Unstructured] {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(fixture.GroupVersion.WithKind(kind))
		return &reconcilers.ResourceReconciler[*unstructured.Unstructured]{
			Type: u, Setup: checkName, Config: config, Reconciler: reconcilers.Sequence[*unstructured.Unstructured]{},
		}
	}
	wantErr(t, nil, unnamed().SetupWithManager(context.Background(), mgr))
	err := unnamed().SetupWithManager(context.Background(), mgr)
	if err == nil {
		t.Fatal("no error for a second controller with the same name")
	}
	contains(t, err.Error(), "controller with name "+strings.ToLower(kind)+" already exists")
}

func TestRoot_SetupLogsWithNameAndKind(t *testing.T) {
	w := newWorld(t)
	mgr := newManager(t, w, newEventCache(w.Scheme))
	log, lines := newLog(0)
	s := &setups{t: t, config: configFor(w, mgr)}
	r := &resourceReconciler{Name: "root", Config: s.config, Setup: s.hook("root"), Reconciler: sequence{s.part("a")}}
	wantErr(t, nil, r.SetupWithManager(withLog(context.Background(), log), mgr))
	for _, line := range []string{
		`root "level"=0 "msg"="set up root" "resourceType"="Resource.fixture.trueup.dev"`,
		`root/0/a "level"=0 "msg"="set up a" "resourceType"="Resource.fixture.trueup.dev"`,
	} {
		contains(t, "\n"+lines.all()+"\n", "\n"+line+"\n")
	}
}
