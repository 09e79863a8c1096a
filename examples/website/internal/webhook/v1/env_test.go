// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/internal/await"
	"trueup.dev/sandbox"
)

// patience is how long something may take before a test gives it up.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // watches complain when the control plane goes
	m.Run()
}

// env is a namespace of a real Kubernetes API that asks the webhooks of this test.
type env struct {
	testing.TB
	client.Client // an administrator's, without a cache
	*sandbox.Env
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	sb := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{website.CRDs()}})
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), website.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(sb.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &env{TB: t, Client: c, Env: sb}
}

// serve starts a manager with the webhooks, and with what else setup adds, and returns when the API server asks them.
func (e *env) serve(setup ...func(context.Context, ctrl.Manager) error) {
	e.Helper()
	options := webhook.Options{Host: "127.0.0.1", Port: e.freePort(), CertDir: e.TempDir()}
	// The API server trusts just this certificate: its authority is the bundle it is registered with.
	certificate, key, err := certutil.GenerateSelfSignedCertKey(options.Host, []net.IP{net.ParseIP(options.Host)}, nil)
	e.must(err)
	e.must(os.WriteFile(filepath.Join(options.CertDir, "tls.crt"), certificate, 0o600))
	e.must(os.WriteFile(filepath.Join(options.CertDir, "tls.key"), key, 0o600))

	mgr, err := ctrl.NewManager(e.RESTConfig(), ctrl.Options{
		Scheme:        e.Scheme(),
		Metrics:       metricsserver.Options{BindAddress: "0"},
		Cache:         cache.Options{DefaultNamespaces: map[string]cache.Config{e.Namespace: {}}},
		WebhookServer: webhook.NewServer(options),
		Controller:    config.Controller{SkipNameValidation: new(true)},
	})
	e.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	e.Cleanup(cancel)
	for _, setup := range append(setup, website.SetupWebhooks) {
		e.must(setup(ctx, mgr))
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	e.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			e.Errorf("the manager ended with: %v", err)
		}
	})
	e.eventually(func() error { return mgr.GetWebhookServer().StartedChecker()(nil) })
	e.register("https://"+net.JoinHostPort(options.Host, strconv.Itoa(options.Port)), certificate)
}

// withController adds the controller to the manager.
func (e *env) withController(ctx context.Context, mgr ctrl.Manager) error {
	return website.SetupWithManager(ctx, mgr, website.Options{Records: dns.NewDirectory(e.TempDir())})
}

func (e *env) freePort() int {
	e.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	e.must(err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// register creates the webhook configurations that are generated from the markers, but for the namespace of this test and
// with a URL, and waits until the API server goes by them. They go before the manager does: nobody would answer.
func (e *env) register(url string, authority []byte) {
	e.Helper()
	manifest, err := website.Webhooks().Open("manifests.yaml")
	e.must(err)
	defer manifest.Close()
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	decoder := utilyaml.NewYAMLToJSONDecoder(manifest)
	e.must(errors.Join(decoder.Decode(&mutating), decoder.Decode(&validating)))
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
		e.must(e.Create(e.Context(), configuration))
		e.Cleanup(func() { e.must(e.Delete(context.Background(), configuration)) })
	}

	probe := newSite("probe")
	probe.Annotations = map[string]string{websitev1.AnnotationProtected: "true"}
	e.create(probe)
	e.eventually(func() error {
		untitled := newSite("untitled")
		untitled.Namespace, untitled.Spec.Pages[0].Title = e.Namespace, ""
		return e.Create(e.Context(), untitled, client.DryRunAll)
	})
	e.eventually(func() error {
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
	e.must(e.Delete(e.Context(), probe))
	e.gone(probe)
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

// change reads an object, changes it and writes it, again if another writer was faster.
func change[T client.Object](e *env, object T, apply func(T)) {
	e.Helper()
	e.eventually(func() error {
		e.reload(object)
		apply(object)
		err := e.Update(e.Context(), object)
		if err != nil && !apierrs.IsConflict(err) {
			e.Fatal(err)
		}
		return err
	})
}

// reload reads an object again.
func (e *env) reload(object client.Object) {
	e.Helper()
	e.must(e.Get(e.Context(), client.ObjectKeyFromObject(object), object))
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

func newSite(name string) *websitev1.Website {
	return &websitev1.Website{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: websitev1.WebsiteSpec{
			Domain: name + ".example.com",
			Pages:  []websitev1.Page{{Name: "index", Title: "Welcome"}},
		},
	}
}
