// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/plan"
)

var (
	plannedObjects  = flag.Int("plan.objects", 200, "the number of resources of BenchmarkPlan")
	plannedParallel = flag.Int("plan.parallel", 1, "the number of plans that BenchmarkPlan makes at the same time")
	plannedLatency  = flag.Duration("plan.latency", 0, "what BenchmarkPlan adds to the time of each request")
)

// BenchmarkPlan plans an upgrade that changes one field of the child of each resource. It reports the requests for each
// plan, and the memory that is in use at the end.
func BenchmarkPlan(b *testing.B) {
	e := newBenchmarkEnv(b)
	var group sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range *plannedObjects {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			parent := newResource(fmt.Sprintf("parent-%05d", i), map[string]string{"a": "1"})
			parent.Namespace = e.Namespace
			child := newConfigMap(parent.Name, nil)
			child.Namespace = e.Namespace
			if err := errors.Join(e.Create(e.Context(), parent), e.Create(e.Context(), child)); err != nil {
				b.Error(err)
			}
		})
	}
	group.Wait()
	var requests atomic.Int64
	config := e.RESTConfig()
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			requests.Add(1)
			time.Sleep(*plannedLatency)
			return inner.RoundTrip(r)
		})
	})
	cluster, err := client.New(config, client.Options{Scheme: e.Scheme()})
	e.Must(err)
	planner, err := plan.New(e.Context(), cluster, plainSetUp, plan.Options{Parallel: *plannedParallel})
	e.Must(err)
	b.Cleanup(planner.Close)
	selection := plan.Selection{Namespace: e.Namespace, Kind: fixture.GroupVersion.WithKind("Resource")}
	b.ResetTimer()
	requests.Store(0)
	for b.Loop() {
		summary := &plan.Summary{}
		most := uint64(0)
		e.Must(planner.Each(e.Context(), selection, func(p *plan.Plan) error {
			summary.Add(p)
			if summary.Plans%500 == 0 {
				runtime.GC()
				var memory runtime.MemStats
				runtime.ReadMemStats(&memory)
				most = max(most, memory.HeapInuse)
			}
			return nil
		}))
		if summary.Changing != *plannedObjects || len(summary.Groups) != 2 {
			b.Fatalf("unexpected plans:\n%s", summary.Text())
		}
		b.ReportMetric(float64(most)/(1<<20), "MB-in-use")
	}
	b.ReportMetric(float64(requests.Load())/float64(b.N**plannedObjects), "requests/plan")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N**plannedObjects), "µs/plan")
}
