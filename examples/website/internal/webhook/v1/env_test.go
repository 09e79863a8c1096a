// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/internal/apitest"
	"trueup.dev/sandbox"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// env is a namespace of a real Kubernetes API that asks the webhooks of this test.
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

// serve starts a manager with the webhooks, and with what else setup adds, and returns when the API server asks them.
func (e *env) serve(setup ...func(context.Context, ctrl.Manager) error) {
	e.Helper()
	options, authority := e.WebhookOptions()
	server := webhook.NewServer(options)
	e.Manager(e.RESTConfig(), ctrl.Options{WebhookServer: server}, append(setup, website.SetupWebhooks)...)
	e.Eventually(func() error { return server.StartedChecker()(nil) })
	e.register("https://"+net.JoinHostPort(options.Host, strconv.Itoa(options.Port)), authority)
}

// withController adds the controller to the manager.
func (e *env) withController(ctx context.Context, mgr ctrl.Manager) error {
	return website.SetupWithManager(ctx, mgr, website.Options{Records: dns.NewDirectory(e.TempDir())})
}

// register creates the webhook configurations that are generated from the markers, but for the namespace of this test and
// with a URL, and waits until the API server goes by them. They go before the manager does: nobody would answer.
func (e *env) register(url string, authority []byte) {
	e.Helper()
	manifest, err := website.Webhooks().Open("manifests.yaml")
	e.Must(err)
	defer manifest.Close()
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	decoder := utilyaml.NewYAMLToJSONDecoder(manifest)
	e.Must(errors.Join(decoder.Decode(&mutating), decoder.Decode(&validating)))
	if err := decoder.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		e.Fatalf("the manifest holds more than two configurations (error %v)", err)
	}

	here := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": e.Namespace}}
	call := func(c *admissionregistrationv1.WebhookClientConfig) {
		*c = admissionregistrationv1.WebhookClientConfig{URL: new(url + *c.Service.Path), CABundle: authority}
	}
	for i := range mutating.Webhooks {
		call(&mutating.Webhooks[i].ClientConfig)
		mutating.Webhooks[i].NamespaceSelector = here
	}
	for i := range validating.Webhooks {
		call(&validating.Webhooks[i].ClientConfig)
		validating.Webhooks[i].NamespaceSelector = here
	}
	for _, configuration := range []client.Object{&mutating, &validating} {
		configuration.SetName(configuration.GetName() + "." + e.Namespace)
		e.Must(e.Create(e.Context(), configuration))
		e.Cleanup(func() { e.Must(e.Delete(context.Background(), configuration)) })
	}

	probe := newSite("probe")
	probe.Annotations = map[string]string{websitev1.AnnotationProtected: "true"}
	e.Add(probe)
	e.Eventually(func() error {
		untitled := newSite("untitled")
		untitled.Namespace, untitled.Spec.Pages[0].Title = e.Namespace, ""
		return e.Create(e.Context(), untitled, client.DryRunAll)
	})
	e.Eventually(func() error {
		err := e.Delete(e.Context(), probe, client.DryRunAll)
		if err == nil {
			return errors.New("a protected site can be deleted")
		}
		if !apierrs.IsForbidden(err) {
			return err
		}
		return nil
	})
	change(e, probe, func(site *websitev1.Website) { site.Annotations = nil })
	e.Must(e.Delete(e.Context(), probe))
	e.Gone(probe)
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
