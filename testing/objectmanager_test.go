// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
