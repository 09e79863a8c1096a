// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/duck"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
)

type (
	ducks              = reconcilers.UpdatingObjectManager[*fixture.Duck]
	objectManagerTests = rtesting.SubReconcilerTests[client.Object]
	objectManagerCase  = rtesting.SubReconcilerTestCase[client.Object]
)

// managing returns the GivenStashedValues of a case, and managed its ExpectStashedValues. nil means no object.
func managing(actual, desired *corev1.ConfigMap) map[stash.Key]any {
	return map[stash.Key]any{
		rtesting.ObjectManagerReconcilerTestHarnessActualStasher[*corev1.ConfigMap]().Key():  actual,
		rtesting.ObjectManagerReconcilerTestHarnessDesiredStasher[*corev1.ConfigMap]().Key(): desired,
	}
}

func managed(returned *corev1.ConfigMap) map[stash.Key]any {
	return map[stash.Key]any{rtesting.ObjectManagerReconcilerTestHarnessResultStasher[*corev1.ConfigMap]().Key(): returned}
}

// configMapsFactory returns an object manager for ConfigMaps.
func configMapsFactory(
	_ *testing.T, tc *objectManagerCase, c reconcilers.Config,
) reconcilers.SubReconciler[client.Object] {
	if server, ok := c.Client.(rtesting.TestClient); ok {
		server.AddReactor("*", "ConfigMap", func(action rtesting.Action) (handled bool, ret runtime.Object, err error) {
			if write, ok := action.(rtesting.UpdateAction); ok {
				byServer(write.GetObject().(*corev1.ConfigMap))
			}
			return false, nil, nil
		})
	}
	manager := changed(&configMaps{MergeBeforeUpdate: mergeData}, tc.Metadata)
	return &rtesting.ObjectManagerReconcilerTestHarness[*corev1.ConfigMap]{ObjectManager: manager}
}

// byServer makes the change of the server to a ConfigMap that the manager of configMapsFactory writes.
func byServer(cm *corev1.ConfigMap) { cm.Data["added"] = "by the server" }

func drift(cm *corev1.ConfigMap) { cm.Data["key"] = "drift" }

func TestUpdatingObjectManager(t *testing.T) {
	actual, drifted, removed := newConfigMap("child"), newConfigMap("child", drift), newConfigMap("child", deleting)
	generated := rtesting.With(wanted(""), func(cm *corev1.ConfigMap) { cm.GenerateName = "child-" })
	create, update, remove, keep := managing(nil, wanted("child")), managing(drifted, wanted("child")),
		managing(actual, nil), managing(actual, wanted("child"))
	created, updated := managed(wanted("child", "added", "by the server")), managed(newConfigMap("child", byServer))
	creates, updates := objects{wanted("child")}, objects{actual}
	holding := changes(func(m *configMaps) { m.Finalizer = "test-finalizer" })
	tracking := changes(func(m *configMaps) { m.TrackDesired = true })
	both := changes(func(m *configMaps) { m.Finalizer, m.TrackDesired = "test-finalizer", true })
	harmonizing := changes(func(m *configMaps) {
		m.HarmonizeImmutableFields = func(current, desired *corev1.ConfigMap) { desired.Data["key"] = current.Data["key"] }
	})
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(actual, newResource(), scheme)}
	held, patched := newResource(finalizer("test-finalizer")), func(r *fixture.Resource) { r.ResourceVersion = "1000" }
	adds, clears := patches{finalizers("test-finalizer")}, patches{finalizers()}
	failed := func(reason, verb string) events {
		return events{warning(reason, "Failed to "+verb+` ConfigMap "child": failure of the test`)}
	}

	inAll(objectManagerTests{
		// Nothing exists and nothing is desired.
		"nothing": {GivenStashedValues: managing(nil, nil)},
		// If no object exists, the finalizer is removed.
		"nothing, finalizer": {
			Metadata: holding, Resource: held, GivenStashedValues: managing(nil, nil),
			ExpectResource: newResource(patched), ExpectPatches: clears, ExpectEvents: events{finalizerPatched},
		},
		// The failure is returned.
		"nothing, finalizer, failure": {
			Metadata: holding, Resource: held, GivenStashedValues: managing(nil, nil), WithReactors: failing(
				"patch", "Resource", errTest,
			),
			ExpectPatches: clears, ExpectEvents: events{finalizerFailed}, ShouldErr: true, Verify: failsWith(errTest),
		},
		// A blank object does not exist.
		"nothing, blank": {GivenStashedValues: managing(&corev1.ConfigMap{}, nil)},
		// The finalizer is kept until the object no longer exists in the cache.
		"delete": {
			Metadata: holding, Resource: held, GivenStashedValues: remove, ExpectDeletes: deletes("child"), ExpectEvents: events{
				deletedChild,
			},
		},
		// The object is already being deleted.
		"delete, terminating": {GivenStashedValues: managing(removed, nil)},
		// A new object of the same name is not deleted.
		"delete, precondition": {
			GivenStashedValues: remove, ExpectDeletes: deletes("child"), ExpectEvents: events{deletedChild},
			WithReactors: []rtesting.ReactionFunc{func(action rtesting.Action) (handled bool, ret runtime.Object, err error) {
				if deletion, ok := action.(rtesting.DeleteAction); ok {
					equal(t, "precondition", actual.UID, *deletion.GetDeleteOptions().Preconditions.UID)
				}
				return false, nil, nil
			}},
		},
		// The failure is recorded and returned.
		"delete, failure": {
			GivenStashedValues: remove, WithReactors: failing("delete", "ConfigMap", errTest), ExpectDeletes: deletes("child"),
			ExpectEvents: failed("DeleteFailed", "delete"), ShouldErr: true, Verify: failsWith(errTest),
		},
		// No event for a quiet error.
		"delete, quiet failure": {
			GivenStashedValues: remove, WithReactors: failing("delete", "ConfigMap", errQuiet), ExpectDeletes: deletes("child"),
			ShouldErr: true, Verify: failsWith(errQuiet),
		},
		// The object no longer exists, which is the desired state.
		"delete, not found": {
			GivenStashedValues: remove, WithReactors: failing("delete", "ConfigMap", errNotFound),
			ExpectDeletes: deletes("child"),
		},
		// The object is returned as stored in the server.
		"create": {
			GivenStashedValues: create, ExpectCreates: creates, ExpectEvents: events{createdChild}, ExpectStashedValues: created,
		},
		// A blank object does not exist.
		"create, blank": {
			GivenStashedValues: managing(&corev1.ConfigMap{}, wanted("child")),
			ExpectCreates:      creates, ExpectEvents: events{createdChild}, ExpectStashedValues: created,
		},
		"create, finalizer and track": {
			Metadata: both, GivenStashedValues: create, ExpectResource: newResource(finalizer("test-finalizer"), patched),
			ExpectPatches: adds,
			ExpectCreates: creates, ExpectTracks: tracks, ExpectEvents: events{
				finalizerPatched, createdChild,
			}, ExpectStashedValues: created,
		},
		// If the finalizer cannot be added, no object is created.
		"create, finalizer fails": {
			Metadata: holding, GivenStashedValues: create, WithReactors: failing("patch", "Resource", errTest),
			ExpectPatches: adds, ExpectEvents: events{finalizerFailed}, ShouldErr: true, Verify: failsWith(errTest),
		},
		// An object that was not created is not tracked.
		"create, failure": {
			Metadata: tracking, GivenStashedValues: create, WithReactors: failing("create", "ConfigMap", errTest),
			ExpectCreates: creates,
			ExpectEvents:  failed("CreationFailed", "create"), ShouldErr: true, Verify: failsWith(errTest),
		},
		// No event for a quiet error.
		"create, quiet failure": {
			GivenStashedValues: create, WithReactors: failing("create", "ConfigMap", errQuiet), ExpectCreates: creates,
			ShouldErr: true, Verify: failsWith(errQuiet),
		},
		// Events and tracks contain the name that the server generated.
		"create, generated name": {
			Metadata: tracking, GivenStashedValues: managing(nil, generated), ExpectCreates: objects{generated},
			ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(wanted("child-001"), newResource(), scheme)},
			ExpectEvents: events{normal("Created", `Created ConfigMap "child-001"`)},
			ExpectStashedValues: managed(
				rtesting.With(generated, byServer, func(cm *corev1.ConfigMap) { cm.Name = "child-001" }),
			),
		},
		// Nothing is written.
		"in sync": {
			Metadata: tracking, GivenStashedValues: keep, ExpectTracks: tracks, ExpectStashedValues: managed(actual),
			ExpectWiring: &rtesting.Wiring{Tracks: watched},
		},
		// The finalizer is restored.
		"in sync, finalizer": {
			Metadata: holding, GivenStashedValues: keep, ExpectStashedValues: managed(actual),
			ExpectResource: newResource(finalizer("test-finalizer"), patched), ExpectPatches: adds,
			ExpectEvents: events{finalizerPatched},
		},
		// The object is returned as stored in the server.
		"update": {
			GivenStashedValues: update, ExpectUpdates: updates, ExpectEvents: events{updatedChild}, ExpectStashedValues: updated,
		},
		"update, finalizer and track": {
			Metadata: both, GivenStashedValues: update, ExpectResource: newResource(finalizer("test-finalizer"), patched),
			ExpectPatches: adds,
			ExpectUpdates: updates, ExpectTracks: tracks, ExpectEvents: events{
				finalizerPatched, updatedChild,
			}, ExpectStashedValues: updated,
		},
		// If the finalizer cannot be added, the object is not updated.
		"update, finalizer fails": {
			Metadata: holding, GivenStashedValues: update, WithReactors: failing("patch", "Resource", errTest),
			ExpectPatches: adds, ExpectEvents: events{finalizerFailed}, ShouldErr: true, Verify: failsWith(errTest),
		},
		// The failure is recorded and returned.
		"update, failure": {
			GivenStashedValues: update, WithReactors: failing("update", "ConfigMap", errTest), ExpectUpdates: updates,
			ExpectEvents: failed("UpdateFailed", "update"), ShouldErr: true, Verify: failsWith(errTest),
		},
		// No event for a quiet error.
		"update, quiet failure": {
			GivenStashedValues: update, WithReactors: failing("update", "ConfigMap", errQuiet), ExpectUpdates: updates,
			ShouldErr: true, Verify: failsWith(errQuiet),
		},
		// Immutable fields are copied before merging.
		"update, harmonized": {Metadata: harmonizing, GivenStashedValues: update, ExpectStashedValues: managed(drifted)},
	}, func(_ string, tc *objectManagerCase) {
		if tc.Resource == nil {
			tc.Resource = newResource()
		}
		if tc.ExpectStashedValues == nil {
			tc.ExpectStashedValues = managed(nil)
		}
	}).Run(t, scheme, configMapsFactory)
}

// The finalizer is added before the object is written. An object with a generated name is tracked after it was created.
func TestUpdatingObjectManager_Order(t *testing.T) {
	const create, update = "create ConfigMap default/child", "update ConfigMap default/child"
	const track = "track ConfigMap default/child for default/test"
	for name, tc := range map[string]struct {
		actual *corev1.ConfigMap
		fail   error
		want   []string
	}{
		"create": {want: []string{added, patched, create, track, childCreated}},
		"update": {
			actual: newConfigMap("child", func(cm *corev1.ConfigMap) { cm.Data["key"] = "drift" }),
			want:   []string{added, patched, track, update, childUpdated},
		},
		"an existing object that cannot be tracked": {
			fail: errTest, want: []string{added, patched, create, track, childCreated},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource())
			if tc.actual != nil {
				w = newWorld(t, newResource(), tc.actual)
			}
			w.Fail("track", tc.fail)
			manager := &configMaps{Finalizer: "test-finalizer", TrackDesired: true, MergeBeforeUpdate: mergeData}
			got, err := manager.Manage(w.Context(), newResource(), tc.actual, wanted("child"))
			wantErr(t, nil, err)
			equal(t, "writes", tc.want, w.Writes())
			equal(t, "data", map[string]string{"key": "value"}, got.Data)
		})
	}
}

func TestUpdatingObjectManager_EventsGoToTheOriginalConfig(t *testing.T) {
	tc := subReconcilerCase{
		Resource: newResource(), ExpectEvents: events{createdChild},
		AdditionalConfigs: map[string]rtesting.ExpectConfig{"where the child is": {ExpectCreates: objects{wanted("child")}}},
	}
	tc.Run(t, scheme, func(
		*testing.T, *subReconcilerCase, reconcilers.Config,
	) reconcilers.SubReconciler[*fixture.Resource] {
		return &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
			ctx = reconcilers.StashConfig(ctx, reconcilers.RetrieveAdditionalConfigs(ctx)["where the child is"])
			_, err := (&configMaps{MergeBeforeUpdate: mergeData}).Manage(ctx, r, nil, wanted("child"))
			return err
		}}
	})
}

func TestUpdatingObjectManager_Duck(t *testing.T) {
	newDuck := func(value string) *fixture.Duck {
		d := fixture.NewDuck("default", "duck")
		d.Spec.Fields = map[string]string{"key": value}
		return d
	}
	// Only the fields of the duck are sent.
	sent := func(value string) objects {
		u := &unstructured.Unstructured{}
		wantErr(t, nil, duck.Convert(newDuck(value), u))
		return objects{u}
	}
	subReconcilerTests{
		// Events contain the kind of the duck.
		"allowed": {
			Resource: newResource(), Metadata: changes(func(m *ducks) { m.DangerouslyAllowDuckTypes = true }),
			ExpectCreates: sent("value"), ExpectUpdates: sent("changed"),
			ExpectEvents: events{normal("Created", `Created Resource "duck"`), normal("Updated", `Updated Resource "duck"`)},
		},
		// A client would remove the fields that the duck does not have.
		"not allowed": {
			Resource: newResource(), ExpectCreates: objects{newDuck("value")}, ShouldErr: true,
			ExpectEvents: events{
				warning("CreationFailed", `Failed to create Resource "duck": Create is not supported for the duck typed objects`),
			},
		},
	}.Run(t, scheme, func(
		_ *testing.T, tc *subReconcilerCase, _ reconcilers.Config,
	) reconcilers.SubReconciler[*fixture.Resource] {
		manager := changed(&ducks{
			Type: fixture.NewDuck("", ""), MergeBeforeUpdate: func(
				current, desired *fixture.Duck,
			) {
				current.Spec = desired.Spec
			},
		}, tc.Metadata)
		return &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
			actual, err := manager.Manage(ctx, r, nil, newDuck("value"))
			if err != nil {
				return err
			}
			actual.CreationTimestamp = longAgo
			_, err = manager.Manage(ctx, r, actual, newDuck("changed"))
			return err
		}}
	})
}

func TestUpdatingObjectManager_Validate(t *testing.T) {
	w := newWorld(t)
	merge := func(_, _ *fixture.Duck) {}
	type validator interface{ Validate(context.Context) error }
	for name, tc := range map[string]struct {
		manager validator
		want    string
	}{
		"valid":        {&configMaps{MergeBeforeUpdate: mergeData}, ""},
		"valid, typed": {&configMaps{Type: &corev1.ConfigMap{}, MergeBeforeUpdate: mergeData}, ""},
		"no merge":     {&configMaps{}, `UpdatingObjectManager "" must define MergeBeforeUpdate`},
		"no merge, named": {
			&configMaps{Name: "test"}, `UpdatingObjectManager "test" must define MergeBeforeUpdate`,
		},
		"duck": {
			&reconcilers.UpdatingObjectManager[*fixture.Duck]{
				Name: "test", Type: fixture.NewDuck("", ""), MergeBeforeUpdate: merge,
			},
			`UpdatingObjectManager "test" must enable DangerouslyAllowDuckTypes to use a duck type`,
		},
		"duck, allowed": {
			&reconcilers.UpdatingObjectManager[*fixture.Duck]{
				Type: fixture.NewDuck("", ""), MergeBeforeUpdate: merge, DangerouslyAllowDuckTypes: true,
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, lines := newLog(1)
			wantText(t, tc.want, tc.manager.Validate(withLog(w.Context(), log)))
			equal(t, "log", nil, lines.messages())
		})
	}

	t.Run("needs a config", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("no panic without a config")
			}
		}()
		_ = (&configMaps{MergeBeforeUpdate: mergeData}).Validate(context.Background())
	})
	t.Run("deprecated Setup method", func(t *testing.T) {
		r := &configMaps{}
		wantText(
			t, `UpdatingObjectManager "ConfigMapUpdatingObjectManager" must define MergeBeforeUpdate`, r.Setup(w.Context()),
		)
		wantText(t, "", (&configMaps{MergeBeforeUpdate: mergeData}).Setup(w.Context()))
	})
}

func TestUpdatingObjectManager_LogsOnlyWhatHappens(t *testing.T) {
	log, lines := newLog(0)
	w := newWorld(t)
	r := &configMaps{MergeBeforeUpdate: mergeData}
	ctx := withLog(w.Context(), log)
	actual, err := r.Manage(ctx, newResource(), nil, wanted("child"))
	wantErr(t, nil, err)
	actual, err = r.Manage(ctx, newResource(), actual, wanted("child"))
	wantErr(t, nil, err)
	actual, err = r.Manage(ctx, newResource(), actual, wanted("child", "key", "changed"))
	wantErr(t, nil, err)
	_, err = r.Manage(ctx, newResource(), actual, nil)
	wantErr(t, nil, err)
	equal(
		t, "messages", []string{"creating resource", "updating resource", "updated resource", "deleting unwanted resource"},
		lines.messages(),
	)
}

func refused(errs ...*field.Error) error {
	return apierrs.NewInvalid(schema.GroupKind{Kind: "Thing"}, "thing", errs)
}

func ExampleImmutableFields() {
	err := refused(field.Invalid(field.NewPath("spec", "selector"), "a=b", "field is immutable"))
	fmt.Println(reconcilers.ImmutableFields(err))
	// Output: [spec.selector]
}

// The texts are from kube-apiserver 1.37. TestRecreatingObjectManager of internal/tests/integration meets some of them.
func TestImmutableFields(t *testing.T) {
	at, spec := field.NewPath("spec"), []string{"spec"}
	for name, tc := range map[string]struct {
		err  error
		want []string
	}{
		"Deployment":        {refused(field.Invalid(at, "a", "field is immutable")), spec},
		"wrapped":           {fmt.Errorf("update: %w", refused(field.Invalid(at, "", "field is immutable"))), spec},
		"Service":           {refused(field.Invalid(at, "None", "may not change once set")), spec},
		"PriorityClass":     {refused(field.Forbidden(at, "may not be changed in an update.")), spec},
		"StatefulSet":       {refused(field.Forbidden(at, "updates to x for fields other than y are forbidden")), spec},
		"ConfigMap":         {refused(field.Forbidden(at, "field is immutable when `immutable` is set")), spec},
		"volume, with diff": {refused(field.Forbidden(at, "spec is immutable after creation\n- a\n+ b")), spec},
		"Pod":               {refused(field.Forbidden(at, "pod updates may not change fields other than x\n-a")), spec},
		"rule with text":    {refused(field.Invalid(at, "a", "Value is immutable")), spec},
		"rule without text": {refused(field.Invalid(at, "a", "failed rule: self == oldSelf")), spec},
		"two": {refused(
			field.Invalid(at.Child("b"), "", "field is immutable"), field.Invalid(at.Child("a"), "", "field is immutable"),
		), []string{"spec.a", "spec.b"}},

		"another cause too": {refused(
			field.Invalid(at, "", "field is immutable"), field.Invalid(at, "", "must be positive"),
		), nil},
		"the value says it":     {refused(field.Invalid(at, "field is immutable", "must be short")), nil},
		"the diff says it":      {refused(field.Forbidden(at, "may not be empty\n+ a is immutable")), nil},
		"rule on growth":        {refused(field.Invalid(at, "a", "failed rule: self >= oldSelf")), nil},
		"required":              {refused(field.Required(at, "field is immutable")), nil},
		"no causes":             {refused(), nil},
		"another reason":        {apierrs.NewBadRequest("field is immutable"), nil},
		"not from the server":   {errors.New("field is immutable"), nil},
		"nil":                   {nil, nil},
		"status has no details": {&apierrs.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, "fields", tc.want, reconcilers.ImmutableFields(tc.err))
		})
	}
}

// Is a field reported that the author sets and the merge forgets? Once, without a request, and not if the author says
// that it is intended.
func TestUpdatingObjectManager_WhichFieldsAreNotMerged(t *testing.T) {
	service := func(change func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "it"},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": "it"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
			},
		}
		change(s)
		return s
	}
	for name, tc := range map[string]struct {
		desired  func(*corev1.Service)
		merge    func(current, desired *corev1.Service)
		unmerged []string
		want     []string
	}{
		"all are merged": {
			desired: func(s *corev1.Service) { s.Labels = map[string]string{"a": "b"} },
			merge:   func(current, desired *corev1.Service) { current.Labels, current.Spec = desired.Labels, desired.Spec },
		},
		"two are forgotten": {
			desired: func(s *corev1.Service) {
				s.Labels, s.Spec.Type = map[string]string{"a": "b"}, corev1.ServiceTypeNodePort
			},
			merge: func(current, desired *corev1.Service) {
				current.Spec.Ports, current.Spec.Selector = desired.Spec.Ports, desired.Spec.Selector
			},
			want: []string{`fields=["metadata.labels[a]" "spec.type"]`},
		},
		"one is forgotten on purpose": {
			desired:  func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort },
			merge:    func(current, desired *corev1.Service) { current.Spec.Ports = desired.Spec.Ports },
			unmerged: []string{".spec.type"},
		},
		"not set by the author": {
			desired: func(*corev1.Service) {},
			merge:   func(current, _ *corev1.Service) { current.Spec.Type = corev1.ServiceTypeClusterIP },
		},
	} {
		t.Run(name, func(t *testing.T) {
			actual := service(func(s *corev1.Service) { s.UID, s.ResourceVersion, s.CreationTimestamp = "uid", "999", longAgo })
			w := newWorld(t, newResource(), actual)
			logged := []string{}
			ctx := logr.NewContext(w.Context(), funcr.New(func(_, args string) {
				if _, fields, found := strings.Cut(args, `"fields"`); found && strings.Contains(args, "does not copy fields") {
					logged = append(logged, "fields"+fields)
				}
			}, funcr.Options{}))
			manager := &reconcilers.UpdatingObjectManager[*corev1.Service]{MergeBeforeUpdate: tc.merge, Unmerged: tc.unmerged}
			var parent client.Object = &fixture.Resource{ObjectMeta: newResource().ObjectMeta}
			current := actual
			for range 3 {
				var err error
				if current, err = manager.Manage(ctx, parent, current, service(tc.desired)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(fmt.Sprint(tc.want), fmt.Sprint(logged)); diff != "" {
				t.Errorf("unexpected log lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPatch(t *testing.T) {
	with := func(generation int64, fields map[string]string) *fixture.Resource {
		return newResource(func(r *fixture.Resource) { r.Generation, r.Spec.Fields = generation, fields })
	}
	failing := func(marshal, unmarshal bool) *fixture.Resource {
		return newResource(func(r *fixture.Resource) { r.Spec.ErrOnMarshal, r.Spec.ErrOnUnmarshal = marshal, unmarshal })
	}
	for name, tc := range map[string]struct {
		base, update, rebase client.Object
		newErr, applyErr     error
		want                 client.Object
	}{
		"nothing": {base: newResource(), update: newResource(), rebase: newResource(), want: newResource()},
		"added": {
			base: with(1, nil), update: with(1, map[string]string{"a": "1"}), rebase: with(1, nil),
			want: with(1, map[string]string{"a": "1"}),
		},
		"removed": {
			base: with(1, map[string]string{"a": "1", "b": "2"}), update: with(1, map[string]string{"b": "2"}),
			rebase: with(1, map[string]string{"a": "3", "b": "2"}), want: with(1, map[string]string{"b": "2"}),
		},
		"unrelated fields": {
			base: with(1, map[string]string{"a": "1"}), update: with(1, map[string]string{"a": "2"}),
			rebase: with(1, map[string]string{"a": "1", "b": "2"}), want: with(1, map[string]string{"a": "2", "b": "2"}),
		},
		"another generation": {
			base: with(1, nil), update: with(1, map[string]string{"a": "1"}), rebase: with(2, nil),
			applyErr: reconcilers.PatchGenerationMismatch, want: with(2, nil),
		},
		"base cannot be encoded":   {base: failing(true, false), update: newResource(), newErr: fixture.ErrMarshal},
		"update cannot be encoded": {base: newResource(), update: failing(true, false), newErr: fixture.ErrMarshal},
		"rebase cannot be encoded": {
			base: newResource(), update: newResource(), rebase: failing(true, false), applyErr: fixture.ErrMarshal,
			want: failing(true, false),
		},
		"result cannot be decoded": {
			base: newResource(), update: newResource(), rebase: failing(false, true), applyErr: fixture.ErrUnmarshal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := reconcilers.NewPatch(tc.base, tc.update)
			wantErr(t, tc.newErr, err)
			if err != nil {
				return
			}
			wantErr(t, tc.applyErr, patch.Apply(tc.rebase))
			if tc.want != nil {
				equal(t, "patched object", tc.want, tc.rebase)
			}
		})
	}
	wantText(t, "patch generation did not match target", reconcilers.PatchGenerationMismatch)

	t.Run("cannot be applied", func(t *testing.T) {
		patch, err := reconcilers.NewPatch(
			with(1, map[string]string{"a": "1", "b": "2"}), with(1, map[string]string{"b": "2"}),
		)
		wantErr(t, nil, err)
		rebase := with(1, map[string]string{"b": "2"})
		if err := patch.Apply(rebase); err == nil {
			t.Error("removing a missing field did not fail")
		}
		equal(t, "object, which must not change", with(1, map[string]string{"b": "2"}), rebase)
	})
}
