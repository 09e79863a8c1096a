// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/rest"

	"trueup.dev/app"
	"trueup.dev/operator"
)

// pingApp is an app with one route.
type pingApp struct{}

func (pingApp) CallCustomRoute(_ context.Context, w app.CustomRouteResponseWriter, req *app.CustomRouteRequest) error {
	if req.ResourceIdentifier.Version != "v1" || req.Path != "ping" {
		return app.ErrCustomRouteNotFound
	}
	_, err := io.WriteString(w, "pong")
	return err
}

// Register the handler with the webhook server of a manager. A Runner and package simple do so.
func ExampleAppRoutes() {
	handler, err := operator.AppRoutes{
		App: pingApp{}, Name: "ping", Group: "ping.example.com", KubeConfig: &rest.Config{Host: "https://cluster.example.com"},
	}.Handler()
	if err != nil {
		panic(err)
	}
	_ = handler // mgr.GetWebhookServer().Register(operator.CustomRoutesPath, handler)
	_, err = operator.AppRoutes{}.Handler()
	fmt.Println(err)
	// Output:
	// AppRoutes must have an App
}
