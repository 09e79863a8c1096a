// SPDX-License-Identifier: Apache-2.0

//go:build unix

package website_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/sandbox"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// TestFailover runs two replicas of the main program as processes. It logs how long a handover takes: docs/operating.md
// has the figures.
func TestFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until leases expire, more than a minute")
	}
	binary := filepath.Join(t.TempDir(), "website")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	for _, tc := range []struct {
		name   string
		signal syscall.Signal
		// atMost is the sum of what the standby waits for: the lease, two of its attempts, and its caches.
		atMost time.Duration
	}{
		{name: "the leader stops and releases the lease", signal: syscall.SIGTERM, atMost: 10 * time.Second},
		{name: "the leader is killed", signal: syscall.SIGKILL, atMost: 25 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFailover(t, binary)
			leader := f.start()
			f.add("before")
			f.converges("before")
			standby := f.start()
			f.Eventually(standby.waits)

			at := time.Now()
			leader.signal(tc.signal)
			<-leader.ended
			f.add("after")
			f.converges("after")
			took := standby.writesSince(at)[0].at.Sub(at)
			t.Logf("first write of the next leader after %s", took.Round(10*time.Millisecond))
			if took > tc.atMost {
				t.Errorf("the next leader wrote after %s, want at most %s", took, tc.atMost)
			}
		})
	}

	// A paused leader does not know that it was replaced. It has one worker, which may have been about to send a write.
	t.Run("the leader is paused", func(t *testing.T) {
		const workers = 1
		f := newFailover(t, binary)
		leader := f.start()
		f.add("busy")
		f.converges("busy")
		standby := f.start()
		f.Eventually(standby.waits)

		leader.signal(syscall.SIGSTOP)
		f.add("meanwhile")
		f.converges("meanwhile") // the standby is the leader
		stop := f.Go("changes of the site", f.changes("busy"))
		resumed := time.Now()
		leader.signal(syscall.SIGCONT)
		select {
		case <-leader.ended:
		case <-time.After(apitest.Timeout):
			t.Fatal("the former leader did not end")
		}
		ended := time.Now()
		stop()
		f.converges("busy")

		former, current := leader.writesSince(resumed), standby.writesSince(resumed)
		t.Logf("after the pause, the former leader ran for %s and wrote %d times %v, the new leader %d times",
			ended.Sub(resumed).Round(10*time.Millisecond), len(former), former, len(current))
		if len(former) > workers {
			t.Errorf("the former leader has made %d writes after the pause, want at most one of each worker: %v",
				len(former), former)
		}
		if len(current) == 0 {
			t.Error("the new leader has made no writes, so there was nothing to do for the former leader")
		}
		if !strings.Contains(leader.log.String(), "refusing to reconcile and to write") {
			t.Errorf("the former leader does not log that it refuses to write:\n%s", leader.log.String())
		}
	})
}

// failover is a namespace with Websites and the lease.
type failover struct {
	*apitest.Env
	binary string
}

func newFailover(t *testing.T, binary string) *failover {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(kinds), website.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	// The replicas reconcile all namespaces.
	e := apitest.New(t, kinds, sandbox.TestOptions{Private: true, CRDs: []any{website.CRDs()}})
	e.ReleaseAtEnd(&websitev1.WebsiteList{})
	return &failover{e, binary}
}

func newSite(name string) *websitev1.Website {
	return &websitev1.Website{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: websitev1.WebsiteSpec{
			Domain: name + ".example.com", Pages: []websitev1.Page{{Name: "index", Title: name}},
		},
	}
}

func (f *failover) add(name string) {
	f.Helper()
	f.Add(newSite(name))
}

// converges waits until a replica has reconciled the current generation of a site.
func (f *failover) converges(name string) {
	f.Helper()
	apitest.Until(f.Env, newSite(name), func(site *websitev1.Website) error {
		if site.Status.ObservedGeneration != site.Generation {
			return fmt.Errorf("%s was reconciled at generation %d, and has %d",
				name, site.Status.ObservedGeneration, site.Generation)
		}
		return nil
	})
}

// changes returns a function that changes a site twenty times per second.
func (f *failover) changes(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		site := newSite(name)
		site.Namespace = f.Namespace
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for i := 0; ; i++ {
			patch := fmt.Appendf(nil, `{"spec":{"pages":[{"name":"index","title":"Edition %d"}]}}`, i)
			err := f.Patch(ctx, site, client.RawPatch("application/merge-patch+json", patch))
			if err != nil && ctx.Err() == nil {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	}
}

// replica is a process of the main program. It reaches the API server through a proxy that records its writes.
type replica struct {
	t       testing.TB
	command *exec.Cmd
	log     bytes.Buffer
	// ended is closed when the process has ended.
	ended chan struct{}

	mu         sync.Mutex
	readsLease bool
	writes     []write
}

type write struct {
	at   time.Time
	what string
}

func (w write) String() string { return w.what }

// start starts a replica. It is killed at the end of the test.
func (f *failover) start() *replica {
	f.Helper()
	config := f.RESTConfig()
	transport, err := rest.TransportFor(config)
	f.Must(err)
	server, err := url.Parse(config.Host)
	f.Must(err)
	r := &replica{t: f.TB, ended: make(chan struct{})}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(request *httputil.ProxyRequest) { request.SetURL(server) },
		Transport:     transport,
		FlushInterval: -1, // watch events
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.note(request)
		proxy.ServeHTTP(w, request)
	}))
	f.Cleanup(func() {
		listening.CloseClientConnections()
		listening.Close()
	})

	dir := f.TempDir()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["proxy"] = &clientcmdapi.Cluster{Server: listening.URL}
	kubeconfig.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	kubeconfig.CurrentContext = "proxy"
	f.Must(clientcmd.WriteToFile(*kubeconfig, filepath.Join(dir, "kubeconfig")))

	r.command = exec.Command(f.binary,
		"--kubeconfig", filepath.Join(dir, "kubeconfig"), "--records", filepath.Join(dir, "records"),
		"--leader-elect", "--leader-election-namespace", f.Namespace,
		"--enable-webhooks=false", "--health-probe-bind-address", "0",
	)
	r.command.Stderr = &r.log
	f.Must(r.command.Start())
	f.Cleanup(func() {
		_ = r.command.Process.Kill()
		<-r.ended
	})
	go func() {
		defer close(r.ended)
		_ = r.command.Wait()
	}()
	return r
}

func (r *replica) signal(signal syscall.Signal) {
	r.t.Helper()
	if err := r.command.Process.Signal(signal); err != nil {
		r.t.Fatalf("sending %v: %v", signal, err)
	}
}

// note records requests for the lease, and writes of what the controller manages.
func (r *replica) note(request *http.Request) {
	now, path := time.Now(), request.URL.Path
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case strings.Contains(path, "/leases"):
		r.readsLease = true
	case request.Method == http.MethodGet || strings.Contains(path, "/events"):
	default:
		r.writes = append(r.writes, write{now, request.Method + " " + path})
	}
}

// waits returns nil when the replica has tried to get the lease.
func (r *replica) waits() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.readsLease {
		return errors.New("the replica has not read the lease")
	}
	return nil
}

func (r *replica) writesSince(at time.Time) (since []write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.writes {
		if w.at.After(at) {
			since = append(since, w)
		}
	}
	return since
}
