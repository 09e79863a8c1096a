// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rtesting "trueup.dev/testing"
)

func ExampleNewDeleteRefFromObject() {
	website := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}
	fmt.Printf("%+v\n", rtesting.NewDeleteRefFromObject(website, clientgoscheme.Scheme))
	// Output: {Group: Kind:ConfigMap Namespace:web Name:blog}
}

// told returns a client with a reactor that only looks.
func told(look func(action rtesting.Action)) client.Client {
	c := &rtesting.ExpectConfig{Scheme: clientgoscheme.Scheme, WithReactors: []rtesting.ReactionFunc{
		func(action rtesting.Action) (handled bool, ret runtime.Object, err error) {
			look(action)
			return false, nil, nil
		},
	}}
	return c.Config()
}

func ExampleNewPatchRef() {
	c := told(func(action rtesting.Action) {
		ref := rtesting.NewPatchRef(action.(rtesting.PatchAction))
		fmt.Println(ref.Kind, ref.Name, ref.PatchType, string(ref.Patch))
	})
	theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "theme"}}
	err := c.Patch(context.Background(), theme, client.RawPatch(types.MergePatchType, []byte(`{"data":{"color":"blue"}}`)))
	fmt.Println(err)
	// Output:
	// ConfigMap theme application/merge-patch+json {"data":{"color":"blue"}}
	// configmaps "theme" not found
}

func ExampleNewDeleteRef() {
	c := told(func(action rtesting.Action) {
		fmt.Printf("%+v\n", rtesting.NewDeleteRef(action.(rtesting.DeleteAction)))
	})
	err := c.Delete(context.Background(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "theme"},
	})
	fmt.Println(err)
	// Output:
	// {Group: Kind:ConfigMap Namespace:web Name:theme}
	// configmaps "theme" not found
}

func ExampleNewDeleteCollectionRef() {
	c := told(func(action rtesting.Action) {
		ref := rtesting.NewDeleteCollectionRef(action.(rtesting.DeleteCollectionAction))
		fmt.Println(ref.Kind, ref.Namespace, ref.Labels)
	})
	err := c.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace("web"), client.MatchingLabels{
		"app": "blog",
	})
	fmt.Println(err)
	// Output:
	// ConfigMap web app=blog
	// <nil>
}

func ExampleNewApplyRef() {
	c := told(func(action rtesting.Action) {
		ref := rtesting.NewApplyRef(action.(rtesting.ApplyAction))
		fmt.Println(ref.Kind, ref.Namespace, ref.Name)
	})
	theme := corev1ac.ConfigMap("theme", "web").WithData(map[string]string{"color": "blue"})
	err := c.Apply(context.Background(), theme, client.FieldOwner("painter"))
	fmt.Println(err)
	// Output:
	// ConfigMap web theme
	// <nil>
}

func ExampleNewSubResourceRef() {
	c := told(func(action rtesting.Action) {
		ref := rtesting.NewSubResourceRef(action)
		fmt.Println(ref.Verb, ref.Kind, ref.Name, ref.SubResource)
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog-0"}}
	err := c.SubResource("eviction").Create(context.Background(), pod, &policyv1.Eviction{})
	fmt.Println(err)
	// Output:
	// create Pod blog-0 eviction
	// <nil>
}
