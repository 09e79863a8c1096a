// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"trueup.dev/internal/await"
	"trueup.dev/resource"
	"trueup.dev/sandbox"
	"trueup.dev/simple"
)

// patience is how long something may take before a test gives it up.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // watches complain when the control plane goes
	m.Run()
}

// env is a namespace of a real Kubernetes API.
type env struct {
	testing.TB
	client.Client // an administrator's, without a cache
	*sandbox.Env
}

func newEnv(t *testing.T, crds ...any) *env {
	t.Helper()
	t.Parallel()
	sb := sandbox.ForTest(t, sandbox.TestOptions{CRDs: append(crds, crd("Widget", "widgets", "v1"))})
	scheme := runtime.NewScheme()
	if err := errors.Join(
		clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), resource.AddToScheme(scheme, widgetKind, gadgetV1, gadgetV2),
	); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(sb.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &env{TB: t, Client: c, Env: sb}
}

// config is that of an app that works in the namespace of the test.
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
	e.must(err)
	return app
}

// run runs an app. It stops with the test, or earlier with the returned function.
func (e *env) run(app *simple.App) (stop func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			e.Errorf("the app ended with: %v", err)
		}
	})
	e.Cleanup(stop)
	return stop
}

// start makes an app and runs it.
func (e *env) start(config simple.AppConfig) (stop func()) {
	e.Helper()
	return e.run(e.make(config))
}

// serveWebhooks has the app of a config serve webhooks, and returns where they are reached.
func (e *env) serveWebhooks(config *simple.AppConfig) admissionregistrationv1.WebhookClientConfig {
	e.Helper()
	o := &config.Webhooks
	o.Host, o.Port, o.CertDir = "127.0.0.1", e.freePort(), e.TempDir()
	// The API server trusts just this certificate: its authority is the bundle it is registered with.
	certificate, key, err := certutil.GenerateSelfSignedCertKey(o.Host, []net.IP{net.ParseIP(o.Host)}, nil)
	e.must(err)
	e.must(os.WriteFile(filepath.Join(o.CertDir, "tls.crt"), certificate, 0o600))
	e.must(os.WriteFile(filepath.Join(o.CertDir, "tls.key"), key, 0o600))
	return admissionregistrationv1.WebhookClientConfig{URL: new("https://" + address(o.Port) + "/"), CABundle: certificate}
}

// register has the API server ask an app about the objects in the namespace of the test. The configurations go before the app does: nobody would answer.
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
		e.must(e.Create(e.Context(), configuration))
		e.Cleanup(func() { e.must(e.Delete(context.Background(), configuration)) })
	}
}

func (e *env) freePort() int {
	e.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	e.must(err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func address(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// eventually waits until check has nothing to object to.
func (e *env) eventually(check func() error) {
	e.Helper()
	await.Nil(e, patience, check)
}

// must stops the test if a call has failed.
func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// create creates an object in the namespace of the test.
func (e *env) create(object client.Object) {
	e.Helper()
	object.SetNamespace(e.Namespace)
	e.must(e.Create(e.Context(), object))
}

// read reads an object of the test's namespace again.
func (e *env) read(object client.Object) {
	e.Helper()
	object.SetNamespace(e.Namespace)
	e.must(e.Get(e.Context(), client.ObjectKeyFromObject(object), object))
}

// patch merges a change into an object.
func (e *env) patch(object client.Object, change string) {
	e.Helper()
	e.must(e.Patch(e.Context(), object, client.RawPatch("application/merge-patch+json", []byte(change))))
}

// gone waits until an object is not there any more.
func (e *env) gone(object client.Object) {
	e.Helper()
	e.eventually(func() error {
		err := e.Get(e.Context(), client.ObjectKeyFromObject(object), object)
		if err == nil {
			return fmt.Errorf("%T %s is still there", object, object.GetName())
		}
		return client.IgnoreNotFound(err)
	})
}

func newWidget(name, title string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: WidgetSpec{Title: title}}
}
