// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"trueup.dev/lab/benchmarks/internal/lab"
	"trueup.dev/lab/benchmarks/internal/report"
	"trueup.dev/lab/benchmarks/internal/workload"
	"trueup.dev/sandbox"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestWorkloads runs each workload once, for both contenders, and checks the counts. It does not check times. The
// workloads verify that everything has converged.
func TestWorkloads(t *testing.T) {
	const size = 20
	// The tests of package lab use the same namespace.
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Private: true,
		Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true},
	})
	o := lab.Defaults()
	o.Rounds, o.Sizes, o.Visits, o.Quiet, o.Timeout = 1, []int{size}, 100, 300*time.Millisecond, 2*time.Minute
	o.Sandbox = sandbox.Options{Kubeconfig: env.KubeconfigPath()}
	o.Progress = func(line string) { t.Log(line) }
	o.Workloads = workload.All(time.Millisecond)
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}

	const (
		creates  = "create configmaps"
		patches  = "patch configmaps"
		statuses = "update widgets/status"
	)
	want := map[string]map[string]float64{ // requests without conflicts
		"converge": {creates: size, statuses: size},
		"large":    {creates: size, statuses: size},
		"apply":    {patches: size, statuses: size},
		"slow":     {creates: size, statuses: size},
		"childset": {creates: size, statuses: 1},
		"sequence": {creates: 3 * size, statuses: size},
		"tracking": {creates: 0, statuses: size},
	}
	busy := []string{"storm", "tenants"}
	if len(run.Workloads) != len(want)+len(busy) {
		t.Fatalf("%d workloads were run, want %d", len(run.Workloads), len(want)+len(busy))
	}
	for _, w := range run.Workloads {
		if len(w.Samples) != 2 {
			t.Fatalf("%s: %d samples, want one of each contender", w.Name, len(w.Samples))
		}
		for _, sample := range w.Samples {
			name := w.Name + ", " + sample.Contender
			if slices.Contains(busy, w.Name) {
				if sample.Values[lab.Calm.Name] <= 0 || sample.Values[lab.Responses.Name] < 1 {
					t.Errorf("%s: no changes: %v", name, sample.Values)
				}
				continue
			}
			for request, count := range want[w.Name] {
				if request == patches && sample.Contender == report.HandWritten {
					continue // it applies in each reconcile, and status updates cause more of them
				}
				if got := sample.Values[request] - sample.Values[request+lab.Refused]; got != count {
					t.Errorf("%s: %v times %s, want %v", name, got, request, count)
				}
			}
			if sample.Values[lab.Wall.Name] <= 0 || sample.Values[lab.Reconciles.Name] < 1 {
				t.Errorf("%s: no wall time or no reconciles: %v", name, sample.Values)
			}
			if w.Name == "slow" {
				continue // slow measures nothing else
			}
			appliesAlways := w.Name == "apply" && sample.Contender == report.HandWritten
			if got := sample.Values[lab.StormWrites.Name]; (got != 0) != appliesAlways {
				t.Errorf("%s: %v writes of no-op reconciles", name, got)
			}
			if w.Name == "large" {
				for metric, want := range map[report.Metric]float64{
					lab.RestartWrites: 0, lab.ChangeWrites: 2, // of the child, and of the status
				} {
					if got, ok := sample.Values[metric.Name]; got < want || want == 0 && got > 0 || !ok {
						t.Errorf("%s: %s is %v, want %v", name, metric.Name, got, want)
					}
				}
			}
			if w.Name == "tracking" {
				for metric, want := range map[report.Metric]float64{
					lab.FanoutEnqueued: 100, lab.FanoutTotal: 1, lab.FanoutWrites: 0,
				} {
					if got, ok := sample.Values[metric.Name]; got != want || !ok {
						t.Errorf("%s: %s is %v, want %v", name, metric.Name, got, want)
					}
				}
			}
			if sample.Values["no-op reconcile, allocations"] < 1 {
				t.Errorf("%s: no no-op reconciles: %v", name, sample.Values)
			}
		}
	}
}
