// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func ExamplePrune() {
	// A former release put the feed into a ConfigMap of its own.
	feed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "blog-feed", Labels: map[string]string{"sites.example.com/inventory": "1"},
	}}
	blog := site()
	blog.UID = "1"
	blog.Annotations = map[string]string{"sites.example.com/inventory": `{"kinds":["ConfigMap"]}`}

	reconcile(clusterWith(blog, feed), &reconcilers.Prune[*v1.Resource]{
		Inventory: "sites.example.com/inventory",
		Reconciler: &reconcilers.ChildReconciler[*v1.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
			DesiredChild: func(_ context.Context, parent *v1.Resource) (*corev1.ConfigMap, error) {
				return &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name + "-pages"},
				}, nil
			},
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
			ReflectChildStatusOnParent: func(_ context.Context, _ *v1.Resource, child *corev1.ConfigMap, _ error) {
				fmt.Println(child.Name, child.Labels)
			},
		},
	})
	// Output:
	// event: Normal Created: Created ConfigMap "blog-pages"
	// blog-pages map[sites.example.com/inventory:1]
	// event: Normal Deleted: Deleted ConfigMap "blog-feed"
}
