// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/report"
	"trueup.dev/sandbox"
)

// workloadFunc is a workload of one size that calls a function.
type workloadFunc func(ctx context.Context, trial *Trial) error

func (workloadFunc) About() About { return About{Name: "func", Noun: "parents", Sizes: []int{3}} }

func (f workloadFunc) Run(ctx context.Context, trial *Trial) error { return f(ctx, trial) }

func testOptions(t *testing.T, w Workload) Options {
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true},
	})
	o := Defaults()
	o.Workloads, o.Rounds = []Workload{w}, 2
	o.Sandbox = sandbox.Options{Kubeconfig: env.KubeconfigPath()}
	return o
}

func create(ctx context.Context, trial *Trial) error {
	return trial.Create(ctx, trial.Size, func(i int) client.Object {
		return &api.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: string(rune('a' + i))}}
	})
}

func widgets(ctx context.Context, t *testing.T, trial *Trial) int {
	t.Helper()
	list := &api.WidgetList{}
	if err := trial.Live.List(ctx, list, client.InNamespace(Namespace)); err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

func TestRun_CleansUp(t *testing.T) {
	count := report.Metric{Name: "count"}
	var last *Trial
	var lines []string
	o := testOptions(t, workloadFunc(func(ctx context.Context, trial *Trial) error {
		last = trial
		if before := widgets(ctx, t, trial); before != 0 {
			t.Errorf("%d widgets remain of the previous measurement", before)
		}
		err := create(ctx, trial)
		trial.Report(count, float64(widgets(ctx, t, trial)))
		trial.Note("%d widgets", trial.Size)
		return err
	}))
	o.Progress = func(line string) { lines = append(lines, line) }
	run, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if after := widgets(t.Context(), t, last); after != 0 {
		t.Errorf("%d widgets remain", after)
	}
	if run.Rounds != 2 || len(run.Workloads) != 1 || len(run.Workloads[0].Samples) != 4 ||
		run.Environment.Kubernetes == "" {
		t.Fatalf("measured %+v, want a workload with two rounds of two contenders", run)
	}
	for _, sample := range run.Workloads[0].Samples {
		if sample.Values[count.Name] != 3 {
			t.Errorf("%s, round %d: %v", sample.Contender, sample.Round, sample.Values)
		}
	}
	if want := "[4/4] func, 3 parents, round 2 of 2, hand-written: 3 widgets"; len(lines) != 4 || lines[3] != want {
		t.Errorf("progress %q, want four lines and the last to be %q", lines, want)
	}
}

func TestRun_KeepsMeasurements(t *testing.T) {
	failed := errors.New("it does not converge")
	o := testOptions(t, workloadFunc(func(ctx context.Context, trial *Trial) error {
		if trial.Contender == report.Trueup {
			return errors.Join(create(ctx, trial), failed)
		}
		return nil
	}))
	run, err := Run(t.Context(), o)
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "func, 3 parents, round 1 of 2, trueup: ") {
		t.Errorf("error %v, want one that names the failed measurement", err)
	}
	if len(run.Workloads) != 1 || len(run.Workloads[0].Samples) != 1 || run.Rounds != 1 {
		t.Errorf("measured %+v, want the earlier measurements", run)
	}
}

func TestRun_Timeout(t *testing.T) {
	o := testOptions(t, workloadFunc(func(ctx context.Context, _ *Trial) error {
		<-ctx.Done()
		return ctx.Err()
	}))
	o.Timeout = 100 * time.Millisecond
	if _, err := Run(t.Context(), o); err == nil || !strings.HasSuffix(err.Error(), "timed out after 100ms") {
		t.Errorf("error %v, want a timeout", err)
	}
}
