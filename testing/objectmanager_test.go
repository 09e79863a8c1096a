// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
	"trueup.dev/validation"
)

// managed is what a harness is given for an object manager, and the results.
func managed[T client.Object](actual, desired T) map[stash.Key]any {
	return map[stash.Key]any{
		rtesting.ObjectManagerReconcilerTestHarnessActualStasher[T]().Key():  actual,
		rtesting.ObjectManagerReconcilerTestHarnessDesiredStasher[T]().Key(): desired,
	}
}

func result[T client.Object](obj T) map[stash.Key]any {
	return map[stash.Key]any{rtesting.ObjectManagerReconcilerTestHarnessResultStasher[T]().Key(): obj}
}

func stubFactory[T client.Object](
	*testing.T, *rtesting.SubReconcilerTestCase[client.Object], reconcilers.Config,
) reconcilers.SubReconciler[client.Object] {
	return &rtesting.ObjectManagerReconcilerTestHarness[T]{ObjectManager: &rtesting.StubObjectManager[T]{}}
}

func TestStubObjectManager(t *testing.T) {
	owner := &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}
	desired := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "page", Labels: map[string]string{"app": "blog"}},
		Data:       map[string]string{"title": "Hello"},
	}
	actual := rtesting.With(desired, func(cm *corev1.ConfigMap) {
		cm.CreationTimestamp = metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		cm.ResourceVersion = "999"
	})
	drifted := rtesting.With(actual, func(cm *corev1.ConfigMap) {
		cm.Data = map[string]string{"title": "Bye"}
		cm.BinaryData = map[string][]byte{"logo": {1}}
		cm.Labels = map[string]string{"of": "another client"}
		cm.Annotations = map[string]string{"of": "another client"}
		cm.Finalizers = []string{"of/another-client"}
	})
	updated := rtesting.With(drifted, func(cm *corev1.ConfigMap) {
		cm.Data, cm.Labels, cm.Annotations = desired.Data, desired.Labels, nil
	})
	var none *corev1.ConfigMap

	rtesting.SubReconcilerTests[client.Object]{
		"there is none, and should not": {
			Resource: owner, GivenStashedValues: managed(none, none),
			ExpectStashedValues: result(none),
		},
		"is created": {
			Resource: owner, GivenStashedValues: managed(none, desired),
			ExpectCreates:       []client.Object{desired},
			ExpectStashedValues: result(desired),
		},
		"cannot be created": {
			Resource: owner, GivenStashedValues: managed(none, desired), WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("create", "ConfigMap"),
			},
			ShouldErr:           true,
			ExpectCreates:       []client.Object{desired},
			ExpectStashedValues: result(none),
		},
		"is as desired": {
			Resource: owner, GivenStashedValues: managed(actual, desired),
			ExpectStashedValues: result(actual),
		},
		"is updated": {
			Resource: owner, GivenStashedValues: managed(drifted, desired),
			ExpectUpdates:       []client.Object{updated},
			ExpectStashedValues: result(updated),
		},
		"cannot be updated": {
			Resource: owner, GivenStashedValues: managed(drifted, desired), WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("update", "ConfigMap"),
			},
			ShouldErr:           true,
			ExpectUpdates:       []client.Object{updated},
			ExpectStashedValues: result(none),
		},
		"is deleted": {
			Resource: owner, GivenStashedValues: managed(actual, none),
			ExpectDeletes:       []rtesting.DeleteRef{{Kind: "ConfigMap", Namespace: "web", Name: "page"}},
			ExpectStashedValues: result(none),
		},
		"cannot be deleted": {
			Resource: owner, GivenStashedValues: managed(actual, none), WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("delete", "ConfigMap"),
			},
			ShouldErr:           true,
			ExpectDeletes:       []rtesting.DeleteRef{{Kind: "ConfigMap", Namespace: "web", Name: "page"}},
			ExpectStashedValues: result(none),
		},
		"is being deleted": {
			Resource: owner,
			GivenStashedValues: managed(rtesting.With(drifted, func(cm *corev1.ConfigMap) {
				cm.DeletionTimestamp = new(metav1.Now())
			}), none),
			ExpectStashedValues: result(none),
		},
	}.Run(t, fixture.NewScheme(), stubFactory[*corev1.ConfigMap])
}

// Fields that are not there for all kinds, and the status, which is.
func TestStubObjectManagerMergesCustomResources(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "owner"}}
	actual := &fixture.Resource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog", CreationTimestamp: metav1.Unix(1, 0), UID: "u"},
		Spec:       fixture.ResourceSpec{Fields: map[string]string{"a": "1", "b": "2"}},
		Status:     fixture.ResourceStatus{Fields: map[string]string{"url": "https://blog"}},
	}
	desired := &fixture.Resource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "web", Name: "blog", UID: "another", Annotations: map[string]string{"n": "1"},
		},
		Spec:   fixture.ResourceSpec{Fields: map[string]string{"a": "3"}},
		Status: fixture.ResourceStatus{Fields: map[string]string{"url": "none"}},
	}
	updated := rtesting.With(actual, func(r *fixture.Resource) {
		r.Annotations, r.Spec = desired.Annotations, desired.Spec
	})

	rtesting.SubReconcilerTests[client.Object]{
		"typed": {
			Resource: owner, GivenStashedValues: managed(actual, desired),
			ExpectUpdates:       []client.Object{updated},
			ExpectStashedValues: result(updated),
		},
	}.Run(t, fixture.NewScheme(), stubFactory[*fixture.Resource])
}

func TestStubObjectManagerWithoutJSON(t *testing.T) {
	ctx := reconcilers.StashConfig(t.Context(), (&rtesting.ExpectConfig{Scheme: fixture.NewScheme()}).Config())
	good := &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Name: "blog", CreationTimestamp: metav1.Unix(1, 0)}}
	unwritable := rtesting.With(good, func(r *fixture.Resource) { r.Spec.ErrOnMarshal = true })
	unreadable := rtesting.With(good, func(r *fixture.Resource) { r.Spec.ErrOnUnmarshal = true })
	for name, tt := range map[string]struct {
		actual, desired *fixture.Resource
		want            error
	}{
		"actual":  {actual: unwritable, desired: good, want: fixture.ErrMarshal},
		"desired": {actual: good, desired: unwritable, want: fixture.ErrMarshal},
		"merged":  {actual: good, desired: unreadable, want: fixture.ErrUnmarshal},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&rtesting.StubObjectManager[*fixture.Resource]{}).Manage(ctx, nil, tt.actual, tt.desired)
			if got != nil || !errors.Is(err, tt.want) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestStubObjectManagerOfInterfaces(t *testing.T) {
	object := func(created any, data string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"namespace": "web", "name": "page", "creationTimestamp": created},
			"data":     map[string]any{"title": data},
		}}
	}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "owner"}}
	const created = "2026-01-02T03:04:05Z"

	rtesting.SubReconcilerTests[client.Object]{
		"is created": {
			Resource: owner, GivenStashedValues: managed[client.Object](nil, object(nil, "Hello")),
			ExpectCreates:       []client.Object{object(nil, "Hello")},
			ExpectStashedValues: result[client.Object](object(nil, "Hello")),
		},
		"is updated": {
			Resource: owner, GivenStashedValues: managed[client.Object](object(created, "Bye"), object(nil, "Hello")),
			ExpectUpdates:       []client.Object{object(created, "Hello")},
			ExpectStashedValues: result[client.Object](object(created, "Hello")),
		},
		"is as desired": {
			Resource: owner, GivenStashedValues: managed[client.Object](object(created, "Hello"), object(nil, "Hello")),
			ExpectStashedValues: result[client.Object](object(created, "Hello")),
		},
	}.Run(t, fixture.NewScheme(), stubFactory[client.Object])
}

// An object that was not created is not there, and objects that are handed in stay as they are.
func TestStubObjectManagerKeepsWhatItIsGiven(t *testing.T) {
	config := (&rtesting.ExpectConfig{Scheme: fixture.NewScheme()}).Config()
	ctx := reconcilers.StashConfig(t.Context(), config)
	blank := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "page"}}
	desired := rtesting.With(blank, func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"app": "blog"} })
	asked := desired.DeepCopy()
	manager := &rtesting.StubObjectManager[*corev1.ConfigMap]{}

	created, err := manager.Manage(ctx, nil, blank, desired)
	if err != nil {
		t.Fatal(err)
	}
	created.CreationTimestamp = metav1.Now()
	created.Labels = nil
	updated, err := manager.Manage(ctx, nil, created, desired)
	if err != nil {
		t.Fatal(err)
	}
	updated.Labels["app"] = "changed"
	if diff := cmp.Diff(asked, desired); diff != "" {
		t.Errorf("the desired object was changed (-before +after):\n%s", diff)
	}
	if created.Labels != nil {
		t.Errorf("the actual object was changed: %v", created)
	}

	if gone, err := manager.Manage(ctx, nil, blank, nil); gone != nil || err != nil {
		t.Errorf("got %v, %v for a blank object that is not desired", gone, err)
	}
}

func TestStubObjectManagerIsWiredWithoutManager(t *testing.T) {
	manager := &rtesting.StubObjectManager[*corev1.ConfigMap]{}
	if err := manager.SetupWithManager(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
	if _, ok := any(manager).(validation.Validator); ok {
		t.Error("there is nothing to validate")
	}
}

var (
	actualStasher  = rtesting.ObjectManagerReconcilerTestHarnessActualStasher[*corev1.ConfigMap]()
	desiredStasher = rtesting.ObjectManagerReconcilerTestHarnessDesiredStasher[*corev1.ConfigMap]()
	resultStasher  = rtesting.ObjectManagerReconcilerTestHarnessResultStasher[*corev1.ConfigMap]()
)

type recordedManager struct {
	setUp     error
	manageErr error
	calls     [][]client.Object
}

func (m *recordedManager) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return m.setUp
}

func (m *recordedManager) Manage(
	_ context.Context, resource client.Object, actual, desired *corev1.ConfigMap,
) (*corev1.ConfigMap, error) {
	m.calls = append(m.calls, []client.Object{resource, actual, desired})
	return desired, m.manageErr
}

func TestHarness(t *testing.T) {
	resource := &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}
	actual := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "actual"}}
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "desired"}}
	errManage := errors.New("broken on purpose")

	tests := map[string]struct {
		actual, desired *corev1.ConfigMap
		err             error
	}{
		"nothing":         {},
		"actual":          {actual: actual},
		"desired":         {desired: desired},
		"both":            {actual: actual, desired: desired},
		"fails":           {actual: actual, err: errManage},
		"fails, not none": {desired: desired, err: errManage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config := (&rtesting.ExpectConfig{Scheme: fixture.NewScheme()}).Config()
			ctx := reconcilers.StashConfig(stash.WithContext(t.Context()), config)
			actualStasher.Store(ctx, tt.actual)
			desiredStasher.Store(ctx, tt.desired)
			manager := &recordedManager{manageErr: tt.err}
			harness := &rtesting.ObjectManagerReconcilerTestHarness[*corev1.ConfigMap]{ObjectManager: manager}

			result, err := harness.Reconcile(ctx, resource)
			if result != (reconcilers.Result{}) || !errors.Is(err, tt.err) {
				t.Errorf("got %v, %v", result, err)
			}
			if diff := cmp.Diff([][]client.Object{{resource, tt.actual, tt.desired}}, manager.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if got, err := resultStasher.RetrieveOrError(ctx); got != tt.desired || err != nil {
				t.Errorf("result: %v, %v", got, err)
			}
			if tt.actual != nil {
				if err := config.Get(ctx, client.ObjectKeyFromObject(tt.actual), &corev1.ConfigMap{}); err != nil {
					t.Errorf("the actual object is not there: %v", err)
				}
			}
		})
	}
}

func TestHarnessWithoutValues(t *testing.T) {
	harness := &rtesting.ObjectManagerReconcilerTestHarness[*corev1.ConfigMap]{ObjectManager: &recordedManager{}}
	for name, only := range map[string]stash.Stasher[*corev1.ConfigMap]{
		"no actual object": desiredStasher, "no desired object": actualStasher,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := stash.WithContext(t.Context())
			only.Store(ctx, nil)
			defer func() {
				if r := recover(); r == nil {
					t.Error("no panic")
				}
			}()
			_, _ = harness.Reconcile(ctx, &fixture.Resource{})
		})
	}
}

func TestHarnessWithAnotherClient(t *testing.T) {
	ctx := reconcilers.StashConfig(stash.WithContext(t.Context()), reconcilers.Config{Client: fake.NewFakeClient()})
	actualStasher.Store(ctx, &corev1.ConfigMap{})
	desiredStasher.Store(ctx, nil)
	harness := &rtesting.ObjectManagerReconcilerTestHarness[*corev1.ConfigMap]{ObjectManager: &recordedManager{}}
	if _, err := harness.Reconcile(ctx, &fixture.Resource{}); err == nil || !strings.Contains(err.Error(), "TestClient") {
		t.Errorf("error: %v", err)
	}
}

func TestHarnessSetsUpItsManager(t *testing.T) {
	manager := &recordedManager{setUp: errors.New("broken on purpose")}
	harness := &rtesting.ObjectManagerReconcilerTestHarness[*corev1.ConfigMap]{ObjectManager: manager}
	if err := harness.SetupWithManager(t.Context(), nil, nil); !errors.Is(err, manager.setUp) {
		t.Errorf("error: %v", err)
	}
	if _, ok := any(harness).(validation.Validator); ok {
		t.Error("it is up to the object manager to be valid")
	}
}

// The three keys differ, and do not depend on the type, so that cases can share them.
func TestHarnessStashers(t *testing.T) {
	keys := map[stash.Key]bool{actualStasher.Key(): true, desiredStasher.Key(): true, resultStasher.Key(): true}
	if len(keys) != 3 {
		t.Errorf("keys: %v", keys)
	}
}
