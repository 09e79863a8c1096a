// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
)

// themeManager keeps the data of a ConfigMap, and what others have put on it.
func themeManager() reconcilers.ObjectManager[*corev1.ConfigMap] {
	return &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = maps.Clone(desired.Data) },
	}
}

// testThemeManager would be named TestThemeManager if it were not an example.
func testThemeManager(t *testing.T) {
	scheme := clientgoscheme.Scheme
	actual := rtesting.ObjectManagerReconcilerTestHarnessActualStasher[*corev1.ConfigMap]()
	desired := rtesting.ObjectManagerReconcilerTestHarnessDesiredStasher[*corev1.ConfigMap]()
	result := rtesting.ObjectManagerReconcilerTestHarnessResultStasher[*corev1.ConfigMap]()

	blog := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}
	theme := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "theme"}, Data: map[string]string{"color": "teal"},
	}
	faded := rtesting.With(theme, func(cm *corev1.ConfigMap) {
		cm.CreationTimestamp = metav1.Now()
		cm.Labels = map[string]string{"of": "others"}
		cm.Data = map[string]string{"color": "gray"}
	})
	repainted := rtesting.With(faded, func(cm *corev1.ConfigMap) { cm.Data = theme.Data })

	rtesting.SubReconcilerTests[client.Object]{
		"create": {
			Resource:           blog,
			GivenStashedValues: map[stash.Key]any{actual.Key(): nil, desired.Key(): theme},
			ExpectCreates:      []client.Object{theme},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(blog, scheme, corev1.EventTypeNormal, "Created", `Created ConfigMap "theme"`),
			},
			ExpectStashedValues: map[stash.Key]any{result.Key(): theme},
		},
		"update": {
			Resource:           blog,
			GivenStashedValues: map[stash.Key]any{actual.Key(): faded, desired.Key(): theme},
			ExpectUpdates:      []client.Object{repainted},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(blog, scheme, corev1.EventTypeNormal, "Updated", `Updated ConfigMap "theme"`),
			},
			ExpectStashedValues: map[stash.Key]any{result.Key(): repainted},
		},
	}.Run(t, scheme, func(
		*testing.T, *rtesting.SubReconcilerTestCase[client.Object], reconcilers.Config,
	) reconcilers.SubReconciler[client.Object] {
		return &rtesting.ObjectManagerReconcilerTestHarness[*corev1.ConfigMap]{ObjectManager: themeManager()}
	})
}

func ExampleObjectManagerReconcilerTestHarness() {
	var t *testing.T // of your own test function
	testThemeManager(t)
}

// themeReconciler gives each blog a theme.
func themeReconciler(manager reconcilers.ObjectManager[*corev1.ConfigMap]) reconcilers.SubReconciler[*corev1.Pod] {
	return &reconcilers.ChildReconciler[*corev1.Pod, *corev1.ConfigMap, *corev1.ConfigMapList]{
		ChildObjectManager: manager,
		DesiredChild: func(_ context.Context, blog *corev1.Pod) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: blog.Namespace, Name: blog.Name + "-theme"}}, nil
		},
		ReflectChildStatusOnParentWithError: func(_ context.Context, _ *corev1.Pod, _ *corev1.ConfigMap, err error) error {
			return err // it has no condition to put the error into
		},
	}
}

// testThemeReconciler tests a reconciler that has an object manager, without the events and the merges of a real one.
func testThemeReconciler(t *testing.T) {
	scheme := clientgoscheme.Scheme
	blog := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog", UID: "d4f6"}}

	rtesting.SubReconcilerTests[*corev1.Pod]{
		"a blog has a theme": {
			Resource: blog,
			ExpectCreates: []client.Object{
				&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: "web",
						Name:      "blog-theme",
						OwnerReferences: []metav1.OwnerReference{
							*metav1.NewControllerRef(blog, corev1.SchemeGroupVersion.WithKind("Pod")),
						},
					},
				},
			},
		},
	}.Run(t, scheme, func(
		*testing.T, *rtesting.SubReconcilerTestCase[*corev1.Pod], reconcilers.Config,
	) reconcilers.SubReconciler[*corev1.Pod] {
		return themeReconciler(&rtesting.StubObjectManager[*corev1.ConfigMap]{})
	})
}

func ExampleStubObjectManager() {
	var t *testing.T // of your own test function
	testThemeReconciler(t)
}

func TestObjectManagerExamples(t *testing.T) {
	t.Run("ObjectManagerReconcilerTestHarness", testThemeManager)
	t.Run("StubObjectManager", testThemeReconciler)
}
