// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

func ExampleAppliedBy() {
	var t *testing.T // of your own test function
	testAppliedPages(t)
}

func ExampleNewApplyRefFromObject() {
	var t *testing.T // of your own test function
	testAppliedPages(t)
}

func TestAppliedBy(t *testing.T) {
	testAppliedPages(t)
}

// A child that is applied is in sync if the controller owns the fields that it desires.
func testAppliedPages(t *testing.T) {
	t.Helper()
	parent := &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog", UID: "1"}}
	scheme := fixture.NewScheme()
	pages := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog", OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(parent, fixture.GroupVersion.WithKind("Resource")),
		}},
		Data: map[string]string{"index.html": "Hello"},
	}
	owner := reconcilers.DefaultFieldOwner(fixture.GroupVersion.WithKind("Resource").GroupKind())
	stored := rtesting.AppliedBy(owner, pages, scheme)
	tests := rtesting.SubReconcilerTests[*fixture.Resource]{
		"created": {
			Resource:      parent,
			ExpectApplies: []rtesting.ApplyRef{rtesting.NewApplyRefFromObject(pages, scheme)},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(parent, scheme, corev1.EventTypeNormal, "Created", `Created ConfigMap "blog"`),
			},
		},
		"in sync": {
			Resource:     parent,
			GivenObjects: []client.Object{stored},
		},
		"a label of another client stays, another content does not": {
			Resource: parent,
			GivenObjects: []client.Object{rtesting.With(stored, func(pages *corev1.ConfigMap) {
				pages.Labels = map[string]string{"team": "a"}
				pages.Data["index.html"] = "Bye"
			})},
			ExpectApplies: []rtesting.ApplyRef{rtesting.NewApplyRefFromObject(pages, scheme)},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(parent, scheme, corev1.EventTypeNormal, "Updated", `Updated ConfigMap "blog"`),
			},
		},
	}
	tests.Run(t, scheme, func(
		*testing.T, *rtesting.SubReconcilerTestCase[*fixture.Resource], reconcilers.Config,
	) reconcilers.SubReconciler[*fixture.Resource] {
		return &reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
			DesiredChild: func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) {
				return &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog"},
					Data:       map[string]string{"index.html": "Hello"},
				}, nil
			},
			ChildObjectManager: &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{},
			ReflectChildStatusOnParentWithError: func(
				_ context.Context, _ *fixture.Resource, _ *corev1.ConfigMap, err error,
			) error {
				return err
			},
		}
	})
}
