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

func ExampleChildReconciler() {
	reconcile(clusterWith(site()), &reconcilers.ChildReconciler[*v1.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChild: func(_ context.Context, parent *v1.Resource) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name + "-pages"},
				Data:       parent.Spec.Fields,
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Data = desired.Data
		},
		ReflectChildStatusOnParent: func(_ context.Context, parent *v1.Resource, child *corev1.ConfigMap, err error) {
			if err == nil && child != nil {
				fmt.Println(parent.Name, "has its pages in", child.Name, "of", child.OwnerReferences[0].Name)
			}
		},
	})
	// Output:
	// event: Normal Created: Created ConfigMap "blog-pages"
	// blog has its pages in blog-pages of blog
}

func ExampleChildReconciler_objectManager() {
	reconcile(clusterWith(site()), &reconcilers.ChildReconciler[*v1.Resource, *corev1.Secret, *corev1.SecretList]{
		DesiredChild: func(_ context.Context, parent *v1.Resource) (*corev1.Secret, error) {
			if parent.Spec.Fields["password"] == "" {
				// No child is desired. An existing child is deleted.
				return nil, nil
			}
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name},
				StringData: map[string]string{"password": parent.Spec.Fields["password"]},
			}, nil
		},
		// The object manager writes the child.
		ChildObjectManager: &reconcilers.UpdatingObjectManager[*corev1.Secret]{
			MergeBeforeUpdate: func(current, desired *corev1.Secret) {
				current.StringData = desired.StringData
			},
		},
		ReflectChildStatusOnParent: func(_ context.Context, _ *v1.Resource, child *corev1.Secret, _ error) {
			fmt.Println("protected:", child != nil)
		},
	})
	// Output:
	// protected: false
}

func ExampleChildSetReconciler() {
	reconcile(clusterWith(site()), &reconcilers.ChildSetReconciler[*v1.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChildren: func(_ context.Context, parent *v1.Resource) ([]*corev1.ConfigMap, error) {
			children := []*corev1.ConfigMap{}
			for _, language := range []string{"en", "de"} {
				children = append(children, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Namespace: parent.Namespace, Name: parent.Name + "-" + language, Labels: map[string]string{"language": language},
				}})
			}
			return children, nil
		},
		IdentifyChild: func(child *corev1.ConfigMap) string {
			return child.Labels["language"]
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Labels = desired.Labels
			current.Data = desired.Data
		},
		ReflectChildrenStatusOnParent: func(
			_ context.Context, _ *v1.Resource, result reconcilers.ChildSetResult[*corev1.ConfigMap],
		) {
			for _, child := range result.Children {
				fmt.Println(child.Id, child.Child.Name, child.Err)
			}
		},
	})
	// Output:
	// event: Normal Created: Created ConfigMap "blog-de"
	// event: Normal Created: Created ConfigMap "blog-en"
	// de blog-de <nil>
	// en blog-en <nil>
}

func ExampleUpdatingObjectManager() {
	manager := &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Data = desired.Data
		},
		Sanitize: func(configMap *corev1.ConfigMap) any {
			return len(configMap.Data)
		},
	}
	reconcile(clusterWith(site()), &reconcilers.SyncReconciler[*v1.Resource]{
		Sync: func(ctx context.Context, resource *v1.Resource) error {
			desired := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: resource.Namespace, Name: "shared"},
				Data:       map[string]string{"last": resource.Name},
			}
			_, err := manager.Manage(ctx, resource, nil, desired)
			return err
		},
	})
	// Output:
	// event: Normal Created: Created ConfigMap "shared"
}

func ExampleNewPatch() {
	base := &corev1.ConfigMap{Data: map[string]string{"color": "red", "size": "small"}}
	update := &corev1.ConfigMap{Data: map[string]string{"color": "blue", "size": "small"}}
	patch, err := reconcilers.NewPatch(base, update)
	if err != nil {
		fmt.Println(err)
		return
	}
	other := &corev1.ConfigMap{Data: map[string]string{"color": "red", "size": "large"}}
	if err := patch.Apply(other); err != nil {
		fmt.Println(err)
	}
	fmt.Println(other.Data)

	other.Generation = 2
	fmt.Println(patch.Apply(other))
	// Output:
	// map[color:blue size:large]
	// patch generation did not match target
}
