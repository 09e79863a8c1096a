// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"fmt"
	"net/url"
	"runtime"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/clusters"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/testkit/heap"
	"trueup.dev/sandbox"
)

func onControlPlane(t testing.TB, name string) *api {
	t.Helper()
	return newAPI(t, name, sandbox.Options{Backend: sandbox.ControlPlane, DisablePods: true})
}

// TestFleet_live is TestFleet with three control planes.
func TestFleet_live(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three control planes")
	}
	testFleet(t, onControlPlane)
}

// TestFleet_serverRestarts stops the API server of a cluster that remains engaged.
func TestFleet_serverRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts control planes")
	}
	options := sandbox.Options{Backend: sandbox.ControlPlane, DisablePods: true, Dir: t.TempDir()}
	a, b := onControlPlane(t, "a"), newAPI(t, "b", options)
	p := run(t, a, clusters.Options{SetUp: websites(t), Workers: 2})
	a.engage(p.Fleet)
	b.engage(p.Fleet)
	b.add("one")
	b.reconciled("one")
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		a.add(fmt.Sprintf("site-%d", i))
		a.reconciled(fmt.Sprintf("site-%d", i))
	}

	address, err := url.Parse(b.RESTConfig().Host)
	if err != nil {
		t.Fatal(err)
	}
	if options.Port, err = strconv.Atoi(address.Port()); err != nil {
		t.Fatal(err)
	}
	if b.Sandbox, err = sandbox.Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if b.Client, err = client.New(b.RESTConfig(), client.Options{Scheme: b.scheme}); err != nil {
		t.Fatal(err)
	}
	b.add("two")
	b.reconciled("two")
	p.ready(t, "b")
}

// BenchmarkIdleCluster measures what an engaged cluster without objects costs, and what the same clients and informers
// cost without a fleet. It connects repeatedly to one API server. Run it with -benchtime 1x.
func BenchmarkIdleCluster(b *testing.B) {
	if testing.Short() {
		b.Skip("starts a control plane")
	}
	const n = 20
	host := onControlPlane(b, "host")
	p := run(b, host, clusters.Options{SetUp: websites(b)})
	host.engage(p.Fleet) // what all clusters share
	p.ready(b, "host")
	report := func(what string, start func(i int) *connection) {
		before, goroutines := heap.InUse(), runtime.NumGoroutine()
		var last *connection
		for i := range n {
			last = start(i)
		}
		b.ReportMetric(float64(heap.InUse()-before)/n, what+"-bytes/cluster")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/n, what+"-goroutines/cluster")
		b.ReportMetric(float64(len(ctrlfields.StartedInformers(last.GetCache()))), what+"-watches/cluster")
	}
	for range b.N {
		report("plain", func(int) *connection {
			ctx, c := host.connect()
			for _, obj := range []client.Object{
				&websitev1.Website{}, &corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{},
			} {
				if _, err := c.GetCache().GetInformer(ctx, obj); err != nil {
					b.Fatal(err)
				}
			}
			return c
		})
		report("fleet", func(i int) *connection {
			ctx, c := host.connect()
			name := "cluster-" + strconv.Itoa(i)
			if err := p.Engage(ctx, name, c); err != nil {
				b.Fatal(err)
			}
			p.ready(b, name)
			return c
		})
	}
}
