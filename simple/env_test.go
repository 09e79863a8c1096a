// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/resource"
	"trueup.dev/sandbox"
	"trueup.dev/simple"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// env is a namespace of a real Kubernetes API.
type env struct{ *apitest.Env }

func newEnv(t *testing.T, crds ...any) *env {
	t.Helper()
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := errors.Join(
		clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), resource.AddToScheme(
			scheme, widgetKind, gadgetV1, gadgetV2, shortURLKind, planetKind,
		),
	); err != nil {
		t.Fatal(err)
	}
	return &env{apitest.New(t, scheme, sandbox.TestOptions{CRDs: append(crds, crd("Widget", "widgets", "v1"))})}
}

// config returns the config of an app that uses the namespace of the test.
func (e *env) config(name string) simple.AppConfig {
	config := simple.AppConfig{
		Name:               name,
		KubeConfig:         *e.RESTConfig(),
		LeaderElection:     simple.LeaderElection{Disabled: true},
		MetricsBindAddress: "0",
		HealthBindAddress:  "0",
	}
	config.InformerConfig.InformerOptions.Namespaces = []string{e.Namespace}
	return config
}

// make makes an app.
func (e *env) make(config simple.AppConfig) *simple.App {
	e.Helper()
	app, err := simple.NewApp(config)
	e.Must(err)
	return app
}

// run runs an app. The app stops at the end of the test, or when the returned function is called.
func (e *env) run(app *simple.App) (stop func()) {
	e.Helper()
	return e.Go("the app", app.Run)
}

// start makes an app and runs it.
func (e *env) start(config simple.AppConfig) (stop func()) {
	e.Helper()
	return e.run(e.make(config))
}

// serveWebhooks configures an app to serve webhooks, and returns their address.
func (e *env) serveWebhooks(config *simple.AppConfig) admissionregistrationv1.WebhookClientConfig {
	e.Helper()
	options, authority := e.WebhookOptions()
	o := &config.Webhooks
	o.Host, o.Port, o.CertDir = options.Host, options.Port, options.CertDir
	return admissionregistrationv1.WebhookClientConfig{URL: new("https://" + address(o.Port) + "/"), CABundle: authority}
}

// register configures the API server to call the webhooks of an app for objects in the namespace of the test. The
// configurations are deleted before the app stops; otherwise no app would answer.
func (e *env) register(app *simple.App, at admissionregistrationv1.WebhookClientConfig) {
	e.Helper()
	here := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": e.Namespace}}
	mutating, validating := app.WebhookConfigurations(at)
	configurations := []client.Object{}
	if mutating != nil {
		for i := range mutating.Webhooks {
			mutating.Webhooks[i].NamespaceSelector = here
		}
		configurations = append(configurations, mutating)
	}
	if validating != nil {
		for i := range validating.Webhooks {
			validating.Webhooks[i].NamespaceSelector = here
		}
		configurations = append(configurations, validating)
	}
	for _, configuration := range configurations {
		configuration.SetName(configuration.GetName() + "." + e.Namespace)
		e.Must(e.Create(e.Context(), configuration))
		e.Cleanup(func() { e.Must(e.Delete(context.Background(), configuration)) })
	}
}

func address(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// patch merges a change into an object.
func (e *env) patch(object client.Object, change string) {
	e.Helper()
	e.Must(e.Patch(e.Context(), object, client.RawPatch("application/merge-patch+json", []byte(change))))
}

func newWidget(name, title string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: WidgetSpec{Title: title}}
}
