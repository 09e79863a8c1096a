// SPDX-License-Identifier: Apache-2.0

package duck_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/duck"
)

// One type scales any object that has replicas. Its APIVersion and Kind identify the kind.
func Example() {
	ctx := context.Background()
	// in a program: duck.NewDuckAwareClientWrapper(mgr.GetClient())
	c := duck.NewDuckAwareClientWrapper(cluster(whole("shop")))

	obj := &Scalable{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "shop"}, obj); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("replicas:", *obj.Spec.Replicas)

	before := obj.DeepCopy()
	obj.Spec.Replicas = new(int32(3))
	if err := c.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
		fmt.Println(err)
		return
	}

	// fields that the duck type does not have are unchanged
	stored := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), stored); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("replicas:", *stored.Spec.Replicas, "image:", stored.Spec.Template.Spec.Containers[0].Image)
	// Output:
	// replicas: 1
	// replicas: 3 image: nginx
}

func ExampleNewDuckAwareClientWrapper() {
	c := duck.NewDuckAwareClientWrapper(cluster())

	obj := scalable("shop")
	fmt.Println(c.Create(context.Background(), obj))
	fmt.Println(c.Update(context.Background(), obj))
	// Output:
	// Create is not supported for the duck typed objects
	// Update is not supported for the duck typed objects, use Patch instead
}

func ExampleNewDangerousDuckAwareClientWrapper() {
	c := duck.NewDangerousDuckAwareClientWrapper(cluster())

	obj := scalable("shop")
	fmt.Println(c.Create(context.Background(), obj))
	fmt.Println(c.Status().Update(context.Background(), obj))
	// Output:
	// <nil>
	// Update is not supported for the duck typed objects, use Patch instead
}

func ExampleNewDuckAwareAPIReaderWrapper() {
	plain := cluster(whole("blog"), whole("shop"))
	// in a program: duck.NewDuckAwareAPIReaderWrapper(mgr.GetAPIReader(), mgr.GetClient())
	reader := duck.NewDuckAwareAPIReaderWrapper(plain, plain)

	list := &ScalableList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}}
	if err := reader.List(context.Background(), list, client.InNamespace("ns")); err != nil {
		fmt.Println(err)
		return
	}
	for _, item := range list.Items {
		fmt.Println(item.Name, *item.Spec.Replicas)
	}
	// Output:
	// blog 1
	// shop 1
}

func ExampleIsDuck() {
	scheme := clientgoscheme.Scheme
	fmt.Println(duck.IsDuck(&Scalable{TypeMeta: deployment}, scheme))
	fmt.Println(duck.IsDuck(&Scalable{}, scheme))
	fmt.Println(duck.IsDuck(&appsv1.Deployment{}, scheme))
	// Output:
	// true
	// false
	// false
}

func ExampleConvert() {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "StatefulSet",
		"spec":       map[string]any{"replicas": int64(3), "serviceName": "db"},
	}}

	s := &Scalable{}
	err := duck.Convert(obj, s)
	fmt.Println(s.Kind, *s.Spec.Replicas, err)
	// Output: StatefulSet 3 <nil>
}

func ExampleSchemeAccessor() {
	var accessor duck.SchemeAccessor = cluster()
	fmt.Println(accessor.Scheme().Recognizes(appsv1.SchemeGroupVersion.WithKind("Deployment")))
	// Output: true
}
