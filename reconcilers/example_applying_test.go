// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func ExampleApplyingObjectManager() {
	reconcile(clusterWith(site()), &reconcilers.ChildReconciler[*v1.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChild: func(_ context.Context, parent *v1.Resource) (*corev1.ConfigMap, error) {
			// Only the fields that are set here belong to the controller.
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name + "-pages"},
				Data:       parent.Spec.Fields,
			}, nil
		},
		ChildObjectManager: &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{FieldOwner: "site-controller"},
		ReflectChildStatusOnParent: func(_ context.Context, _ *v1.Resource, child *corev1.ConfigMap, err error) {
			if err == nil && child != nil {
				fmt.Println(child.Name, "has the page", child.Data["index.html"])
			}
		},
	})
	// Output:
	// event: Normal Created: Created ConfigMap "blog-pages"
	// blog-pages has the page Hello
}

// An apply configuration can set what the Go type of the object leaves out.
func ExampleApplyingObjectManager_configuration() {
	reconcile(clusterWith(site()), &reconcilers.ChildReconciler[*v1.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChild: func(_ context.Context, parent *v1.Resource) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name}}, nil
		},
		ChildObjectManager: &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{
			Configuration: func(desired *corev1.ConfigMap) (runtime.ApplyConfiguration, error) {
				return applycorev1.ConfigMap(desired.Name, desired.Namespace).WithData(map[string]string{"a": ""}), nil
			},
		},
		ReflectChildStatusOnParent: func(_ context.Context, _ *v1.Resource, child *corev1.ConfigMap, _ error) {
			fmt.Println(child.Data, "of", child.OwnerReferences[0].Name)
		},
	})
	// Output:
	// event: Normal Created: Created ConfigMap "blog"
	// map[a:] of blog
}

// Another client may own a field: here, a HorizontalPodAutoscaler scales what the controller creates.
func ExampleConflictPolicy() {
	manager := &reconcilers.ApplyingObjectManager[client.Object]{
		Type:        &corev1.ReplicationController{},
		Conflicts:   reconcilers.ForceOnConflict,
		ConflictsAt: map[string]reconcilers.ConflictPolicy{"spec.replicas": reconcilers.GiveWayOnConflict},
	}
	fmt.Println(manager.ConflictsAt["spec.replicas"])
	// Output:
	// GiveWay
}
