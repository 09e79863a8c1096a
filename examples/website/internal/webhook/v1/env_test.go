// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/sandbox"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// env is a namespace of a real Kubernetes API that calls the webhooks of this test.
type env struct{ *apitest.Env }

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), website.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return &env{apitest.New(t, scheme, sandbox.TestOptions{CRDs: []any{website.CRDs()}})}
}

// serve starts a manager with the webhooks and further setups, and returns when the API server calls the webhooks.
func (e *env) serve(setup ...func(context.Context, ctrl.Manager) error) {
	e.Helper()
	hooks := e.Webhooks(e, sandbox.WebhookOptions{Configurations: []any{website.Webhooks()}})
	e.Manager(e.RESTConfig(), ctrl.Options{WebhookServer: hooks.Server()}, append(setup, website.SetupWebhooks)...)
	e.Must(hooks.WaitUntilServed(e.Context()))
}

// withController adds the controller to the manager.
func (e *env) withController(ctx context.Context, mgr ctrl.Manager) error {
	return website.SetupWithManager(ctx, mgr, website.Options{Records: dns.NewDirectory(e.TempDir())})
}

func change[T client.Object](e *env, object T, apply func(T)) {
	e.Helper()
	apitest.Change(e.Env, object, apply)
}

func newSite(name string) *websitev1.Website {
	return &websitev1.Website{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: websitev1.WebsiteSpec{
			Domain: name + ".example.com",
			Pages:  []websitev1.Page{{Name: "index", Title: "Welcome"}},
		},
	}
}
