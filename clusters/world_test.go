// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/clusters"
	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/await"
	"trueup.dev/sandbox"
	_ "trueup.dev/sandbox/memory"
)

func TestMain(m *testing.M) { apitest.Main(m) }

const (
	timeout   = 30 * time.Second
	namespace = "default"
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, website.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// api is a Kubernetes API with the kind Website.
type api struct {
	testing.TB
	client.Client
	*sandbox.Sandbox
	name   string
	scheme *runtime.Scheme
	// hangs makes the requests of the clusters of connect hang.
	hangs atomic.Bool
}

func newAPI(t testing.TB, name string, options sandbox.Options) *api {
	t.Helper()
	options.Progress = io.Discard
	s, err := sandbox.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	a := &api{TB: t, Sandbox: s, name: name, scheme: newScheme(t)}
	t.Cleanup(func() {
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := s.InstallCRDs(t.Context(), website.CRDs()); err != nil {
		t.Fatal(err)
	}
	if a.Client, err = client.New(s.RESTConfig(), client.Options{Scheme: a.scheme}); err != nil {
		t.Fatal(err)
	}
	return a
}

func inMemory(t testing.TB, name string) *api {
	t.Helper()
	return newAPI(t, name, sandbox.Options{Backend: sandbox.Memory, DisablePods: true})
}

// connection is an engaged cluster.
type connection struct {
	cluster.Cluster
	// leave ends the context of the cluster, and waits for its caches to stop.
	leave func()
}

// connect returns a cluster that runs until it leaves, and the context of that.
func (a *api) connect() (context.Context, *connection) {
	a.Helper()
	config := a.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &hanging{a, next} })
	return connect(a, config, a.scheme)
}

func connect(t testing.TB, config *rest.Config, scheme *runtime.Scheme) (context.Context, *connection) {
	t.Helper()
	cl, err := cluster.New(config, func(o *cluster.Options) { o.Scheme = scheme })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- cl.Start(ctx) }()
	leave := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		cl.GetHTTPClient().CloseIdleConnections()
	})
	t.Cleanup(leave)
	return ctx, &connection{cl, leave}
}

// engage engages the API in a fleet.
func (a *api) engage(fleet *clusters.Fleet) *connection {
	a.Helper()
	ctx, c := a.connect()
	if err := fleet.Engage(ctx, a.name, c); err != nil {
		a.Fatal(err)
	}
	return c
}

// hanging is a transport whose requests, except for watches, hang while the field of the API is set.
type hanging struct {
	of   *api
	next http.RoundTripper
}

func (h *hanging) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(h.next) }

func (h *hanging) RoundTrip(request *http.Request) (*http.Response, error) {
	if h.of.hangs.Load() && request.URL.Query().Get("watch") == "" {
		<-request.Context().Done()
		return nil, context.Cause(request.Context())
	}
	return h.next.RoundTrip(request)
}

func newSite(name, domain string) *websitev1.Website {
	return &websitev1.Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: websitev1.WebsiteSpec{
			Domain: domain, Replicas: new(int32(0)), Pages: []websitev1.Page{{Name: "index", Title: domain}},
		},
	}
}

// add creates a site, named as in the other clusters.
func (a *api) add(site string) {
	a.Helper()
	if err := a.Create(a.Context(), newSite(site, site+"."+a.name+".example")); err != nil {
		a.Fatal(err)
	}
}

// reconciled waits until a site is ready for its latest spec, with a child of its own cluster.
func (a *api) reconciled(site string) {
	a.Helper()
	await.Nil(a, timeout, func() error { return a.isReconciled(site) })
}

func (a *api) isReconciled(name string) error {
	site := &websitev1.Website{}
	if err := a.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, site); err != nil {
		return err
	}
	if site.Status.ObservedGeneration != site.Generation || !meta.IsStatusConditionTrue(site.Status.Conditions, "Ready") {
		return fmt.Errorf("cluster %s: %s is not ready: generation %d, %+v", a.name, name, site.Generation, site.Status)
	}
	if want := site.Spec.Domain; site.Status.URL != "http://"+want && site.Status.URL != "https://"+want {
		return fmt.Errorf("cluster %s: URL of %s = %q, want that of %s", a.name, name, site.Status.URL, want)
	}
	children := &corev1.ConfigMapList{}
	if err := a.List(context.Background(), children, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range children.Items {
		if metav1.IsControlledBy(&children.Items[i], site) {
			return nil
		}
	}
	return fmt.Errorf("cluster %s: %s has no child among %d ConfigMaps", a.name, name, len(children.Items))
}

// program is a manager with a fleet.
type program struct {
	*clusters.Fleet
	mgr  ctrl.Manager
	stop func()
}

// websites sets up the controller of the example, with records of its own for each cluster.
func websites(t testing.TB) func(ctx context.Context, mgr ctrl.Manager) error {
	t.Helper()
	records := t.TempDir()
	return func(ctx context.Context, mgr ctrl.Manager) error {
		return website.SetupWithManager(ctx, mgr, website.Options{
			Records: dns.NewDirectory(filepath.Join(records, clusters.Name(ctx))),
		})
	}
}

// run starts a manager in a cluster, with a fleet.
func run(t testing.TB, host *api, options clusters.Options, change ...func(*ctrl.Options)) *program {
	t.Helper()
	managed := ctrl.Options{Scheme: host.scheme, Metrics: metricsserver.Options{BindAddress: "0"}}
	managed.Controller.SkipNameValidation = new(true) // several tests use the same name
	for _, change := range change {
		change(&managed)
	}
	mgr, err := ctrl.NewManager(host.RESTConfig(), managed)
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := clusters.New(mgr, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return &program{fleet, mgr, stop}
}

// ready waits until a cluster is ready.
func (p *program) ready(t testing.TB, name string) {
	t.Helper()
	await.Nil(t, timeout, func() error { return p.Ready(name) })
}
