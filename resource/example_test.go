// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/resource"
)

// A kind consists of three Go types: the spec, the status, and one that combines them.
type (
	WebsiteSpec struct {
		Theme string `json:"theme,omitempty"`
		Pages int    `json:"pages,omitempty"`
	}
	WebsiteStatus struct {
		URL string `json:"url,omitempty"`
	}
	Website     = resource.TypedSpecStatusObject[WebsiteSpec, WebsiteStatus]
	WebsiteList = resource.TypedList[Website]
)

var website = resource.Kind{
	Schema: resource.NewSimpleSchema("example.com", "v1", &Website{}, &WebsiteList{}, resource.WithKind("Website")),
}

// exampleClients stands for resource.NewClientGenerator(config.Client, config.APIReader) of a controller.
func exampleClients() resource.ClientGenerator {
	scheme := runtime.NewScheme()
	if err := website.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return resource.NewClientGenerator(
		fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&Website{}).Build(), nil,
	)
}

var blog = resource.Identifier{Namespace: "web", Name: "blog"}

func Example() {
	ctx := context.Background()
	store, err := resource.NewTypedStore[*Website](website, exampleClients())
	if err != nil {
		fmt.Println(err)
		return
	}
	obj, err := store.Upsert(ctx, blog, &Website{Spec: WebsiteSpec{Theme: "dark"}})
	if err != nil {
		fmt.Println(err)
		return
	}

	obj.Status.URL = "https://blog.example.com"
	obj, err = store.UpdateSubresource(ctx, obj.GetStaticMetadata().Identifier(), resource.SubresourceStatus, obj)
	fmt.Println(obj.Kind, obj.Spec.Theme, obj.Status.URL, err)
	// Output: Website dark https://blog.example.com <nil>
}

func ExampleKind() {
	fmt.Println(website)
	fmt.Println(website.GroupVersionResource())
	fmt.Println(website.Validate())
	// Output:
	// Website.v1.example.com
	// example.com/v1, Resource=websites
	// <nil>
}

func ExampleNewSimpleSchema() {
	// a cluster-scoped kind without a Go type
	schema := resource.NewSimpleSchema("example.com", "v1", &unstructured.Unstructured{}, &unstructured.UnstructuredList{},
		resource.WithKind("Index"), resource.WithPlural("indices"), resource.WithScope(resource.ClusterScope))
	kind := resource.Kind{Schema: schema}
	fmt.Println(kind.GroupVersionResource(), kind.Scope(), kind.ZeroValue().GetObjectKind().GroupVersionKind())
	// Output: example.com/v1, Resource=indices Cluster example.com/v1, Kind=Index
}

func ExampleAddToScheme() {
	scheme := runtime.NewScheme()
	fmt.Println(resource.AddToScheme(scheme, website), scheme.Recognizes(website.GroupVersionKind()))
	// Output: <nil> true
}

func ExampleIdentifierOf() {
	obj := &Website{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}
	fmt.Println(resource.IdentifierOf(obj) == resource.Identifier(types.NamespacedName{Namespace: "web", Name: "blog"}))
	// Output: true
}

func ExampleStaticMetadataOf() {
	obj := &Website{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}
	fmt.Println(resource.StaticMetadataOf(obj).Identifier())
	// Output: web/blog
}

func ExampleCommonMetadataOf() {
	obj := &Website{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	fmt.Println(resource.CommonMetadataOf(obj).Generation)
	// Output: 3
}

func ExampleTypedStore_All() {
	ctx := context.Background()
	store, err := resource.NewTypedStore[*Website](website, exampleClients())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"blog", "shop"} {
		if _, err := store.Add(ctx, &Website{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name}}); err != nil {
			fmt.Println(err)
		}
	}

	for obj, err := range store.All(ctx, resource.StoreListOptions{Namespace: "web"}) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(obj.Name)
	}
	// Output:
	// blog
	// shop
}

func ExampleTypedStore_Patch() {
	ctx := context.Background()
	store, err := resource.NewTypedStore[*Website](website, exampleClients(), resource.Live)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := store.Upsert(ctx, blog, &Website{Spec: WebsiteSpec{Theme: "dark"}}); err != nil {
		fmt.Println(err)
	}
	obj, err := store.Patch(ctx, blog, types.MergePatchType, []byte(`{"spec":{"pages":3}}`))
	fmt.Println(obj.Spec, err)
	// Output: {dark 3} <nil>
}

func ExampleUpdateObject() {
	ctx := context.Background()
	store, err := resource.NewTypedStore[*Website](website, exampleClients())
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := store.Upsert(ctx, blog, &Website{Spec: WebsiteSpec{Pages: 1}}); err != nil {
		fmt.Println(err)
	}

	addPage := func(obj *Website, _ bool) (*Website, error) {
		obj.Spec.Pages++
		return obj, nil
	}
	obj, err := resource.UpdateObject(ctx, store, blog, addPage, resource.UpdateOptions{Retries: new(5)})
	fmt.Println(obj.Spec.Pages, err)
	// Output: 2 <nil>
}

func ExampleStore() {
	ctx := context.Background()
	store, err := resource.NewStore(exampleClients(), []resource.Kind{website})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := store.Add(ctx, &Website{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}); err != nil {
		fmt.Println(err)
	}
	obj, err := store.Get(ctx, "Website", blog)
	fmt.Println(obj.GetName(), err)
	// Output: blog <nil>
}
