// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/examples/website"
	"trueup.dev/sandbox"
)

// region webhooks-test
func TestWebsiteWebhooks_SetTheTitleOfAPage(t *testing.T) {
	env := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{website.CRDs()}})
	serveWebhooks(t, env)
	api, err := client.New(env.RESTConfig(), client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}

	site := newSite()
	site.ObjectMeta = metav1.ObjectMeta{Namespace: env.Namespace, Name: "bakery"}
	site.Spec.Pages[0].Title = ""
	if err := api.Create(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	if got := site.Spec.Pages[0].Title; got != "Index" {
		t.Errorf("title = %q, want Index", got)
	}
}

// serveWebhooks serves the webhooks until the test ends.
func serveWebhooks(t *testing.T, env *sandbox.Env) {
	hooks := env.Webhooks(t, sandbox.WebhookOptions{Configurations: []any{website.Webhooks()}}) // or "../config/webhook"
	mgr, err := ctrl.NewManager(env.RESTConfig(), ctrl.Options{
		Scheme:        newScheme(),
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: hooks.Server(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := website.SetupWebhooks(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	if err := hooks.WaitUntilServed(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// endregion
