// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"k8s.io/client-go/rest"

	"trueup.dev/app"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

// A route of each Widget, and one of each namespace. Users need the permission to get widgets/greeting, or to list
// summary. CallCustomRoute calls a handler in a test.
func ExampleAppCustomRouteHandlers() {
	greet := func(_ context.Context, w app.CustomRouteResponseWriter, req *app.CustomRouteRequest) error {
		_, err := fmt.Fprintf(w, "hello from %s", req.ResourceIdentifier.Name)
		return err
	}
	summarize := func(_ context.Context, w app.CustomRouteResponseWriter, req *app.CustomRouteRequest) error {
		_, err := fmt.Fprintf(w, "all widgets of %s", req.ResourceIdentifier.Namespace)
		return err
	}
	made, err := simple.NewApp(simple.AppConfig{
		Name: "greeter", KubeConfig: rest.Config{Host: "https://cluster.example.com"}, MetricsBindAddress: "0",
		HealthBindAddress: "0",
		ManagedKinds: []simple.AppManagedKind{{
			Kind: widgetKind,
			CustomRoutes: simple.AppCustomRouteHandlers{
				{Method: simple.AppCustomRouteMethodGet, Path: "greeting"}: greet,
			},
		}},
		VersionedCustomRoutes: map[string]simple.AppVersionRouteHandlers{
			"v1": {{Namespaced: true, Method: simple.AppCustomRouteMethodGet, Path: "summary"}: summarize},
		},
	})
	if err != nil {
		panic(err)
	}
	for _, req := range []*app.CustomRouteRequest{
		{
			Method: "GET", Path: "greeting",
			ResourceIdentifier: widgetKind.FullIdentifier(resource.Identifier{Namespace: "shop", Name: "it"}),
		},
		{
			Method: "GET", Path: "summary",
			ResourceIdentifier: resource.FullIdentifier{Group: group, Version: "v1", Namespace: "shop"},
		},
		{Method: "PUT", Path: "greeting", ResourceIdentifier: widgetKind.FullIdentifier(resource.Identifier{})},
	} {
		response := httptest.NewRecorder()
		err := made.CallCustomRoute(context.Background(), response, req)
		fmt.Println(response.Body, err)
	}
	// Output:
	// hello from it <nil>
	// all widgets of shop <nil>
	//  custom route "greeting" of simple.example.com/v1, Kind=Widget does not have method PUT: it has GET
}
