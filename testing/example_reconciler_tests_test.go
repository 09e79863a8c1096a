// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// quotaReconciler gives each namespace a quota.
func quotaReconciler(c reconcilers.Config) *reconcilers.ResourceReconciler[*corev1.Namespace] {
	return &reconcilers.ResourceReconciler[*corev1.Namespace]{
		Reconciler: &reconcilers.ChildReconciler[*corev1.Namespace, *corev1.ResourceQuota, *corev1.ResourceQuotaList]{
			ListOptions: func(_ context.Context, namespace *corev1.Namespace) []client.ListOption {
				return []client.ListOption{client.InNamespace(namespace.Name)}
			},
			DesiredChild: func(_ context.Context, namespace *corev1.Namespace) (*corev1.ResourceQuota, error) {
				return &corev1.ResourceQuota{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "default"},
					Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("20")}},
				}, nil
			},
			ChildObjectManager: &reconcilers.UpdatingObjectManager[*corev1.ResourceQuota]{
				MergeBeforeUpdate: func(actual, desired *corev1.ResourceQuota) { actual.Spec = desired.Spec },
			},
			ReflectChildStatusOnParentWithError: func(
				_ context.Context, _ *corev1.Namespace, _ *corev1.ResourceQuota, err error,
			) error {
				return err // it has no condition to put the error into
			},
		},
		Config: c,
	}
}

// testQuotas would be named TestQuotas if it were not an example.
func testQuotas(t *testing.T) {
	scheme := clientgoscheme.Scheme
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", UID: "1b4a"}}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a",
			Name:      "default",
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(namespace, corev1.SchemeGroupVersion.WithKind("Namespace")),
			},
		},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("20")}},
	}
	request := reconcilers.Request{NamespacedName: types.NamespacedName{Name: "team-a"}}

	rtesting.ReconcilerTests{
		"a namespace that does not exist": {
			Request: request,
		},
		"a new namespace gets a quota": {
			Request:       request,
			GivenObjects:  []client.Object{namespace},
			ExpectCreates: []client.Object{quota},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(namespace, scheme, corev1.EventTypeNormal, "Created", `Created ResourceQuota "default"`),
			},
		},
		"a quota that was raised by hand is lowered": {
			Request: request,
			GivenObjects: []client.Object{namespace, rtesting.With(quota, func(q *corev1.ResourceQuota) {
				q.Spec.Hard[corev1.ResourcePods] = resource.MustParse("500")
			})},
			ExpectUpdates: []client.Object{quota},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(namespace, scheme, corev1.EventTypeNormal, "Updated", `Updated ResourceQuota "default"`),
			},
		},
		"a quota that is as it should be is left alone": {
			Request:      request,
			GivenObjects: []client.Object{namespace, quota},
		},
	}.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return quotaReconciler(c)
	})
}

func ExampleReconcilerTests() {
	var t *testing.T // of your own test function
	testQuotas(t)
}
