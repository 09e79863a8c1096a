// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/observe"
	"trueup.dev/observe/logs"
	"trueup.dev/observe/metrics"
	"trueup.dev/reconcilers"
)

// series returns all series of a registry, as "name{labels}", and their values. The value of a histogram is its count.
func series(registry *prometheus.Registry) (map[string]float64, error) {
	families, err := registry.Gather()
	found := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			found[fmt.Sprintf("%s{%s}", family.GetName(), strings.Join(labels, ","))] =
				m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return found, err
}

// awaitSeries waits until the series have at least these values, or are 0.
func awaitSeries(e *env, what string, registry *prometheus.Registry, want map[string]float64) {
	e.Helper()
	e.Eventually(func() error {
		got, err := series(registry)
		if err != nil {
			return err
		}
		for name, value := range want {
			if actual, ok := got[name]; !ok || actual < value || value == 0 && actual != 0 {
				return fmt.Errorf("%s: %s is %g, want %g, all: %v", what, name, actual, value, got)
			}
		}
		return nil
	})
}

// TestWhichStepFailsAndHowLongUntilReady compares metrics and log lines with what the controller does.
func TestWhichStepFailsAndHowLongUntilReady(t *testing.T) {
	e := newEnv(t)
	registry := prometheus.NewRegistry()
	listener, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var lines []string
	written := logs.New(funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{}), logs.Options{})
	set := &childSet{namespace: e.Namespace}
	e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		observe.Of(mgr).Add(listener)
		observe.Of(mgr).Add(written)
		return root(reconcilers.Sequence[*fixture.Resource]{
			set.reconciler(),
			&reconcilers.SyncReconciler[*fixture.Resource]{
				Name: "Gate",
				Sync: func(ctx context.Context, r *fixture.Resource) error {
					if _, closed := r.Spec.Fields["closed"]; closed {
						return errors.New("the gate is closed")
					}
					r.Status.MarkReady(ctx)
					return nil
				},
			},
		})(ctx, mgr, c)
	})
	const (
		controller = "{controller=resource,"
		kind       = controller + "kind=Resource.fixture.trueup.dev}"
		root       = "ResourceResourceReconciler"
	)
	e.Add(newResource("first", nil))
	awaitSeries(e, "a resource at the start", registry, map[string]float64{
		"trueup_steps_total" + controller + "outcome=Succeeded,step=" + root + ".1.Gate}": 1,
	})
	it := newResource("it", nil)
	it.Spec.Fields = map[string]string{"one": "1", "two.dots": "2"}
	e.Add(it)
	const writes, steps = "trueup_writes_total" + controller, "trueup_steps_total" + controller + "outcome=Succeeded,step="
	awaitSeries(e, "a new resource", registry, map[string]float64{
		"trueup_converge_duration_seconds" + kind:                                                  1,
		"trueup_converging_objects" + kind:                                                         0,
		"trueup_reconcile_causes_total{cause=Object,controller=resource}":                          1,
		writes + "kind=ConfigMap,result=changed,subresource=,verb=create}":                         2,
		writes + "kind=Resource.fixture.trueup.dev,result=changed,subresource=status,verb=update}": 1,
		steps + root + ".0.ConfigMapChildSetReconciler.WithFinalizer.Children.*}":                  2,
	})
	change(e, it, func(r *fixture.Resource) { r.Spec.Fields["closed"] = "" })
	failing := "trueup_failing_objects" + controller + "step=" + root + ".1.Gate}"
	awaitSeries(e, "a failure", registry, map[string]float64{failing: 1, "trueup_converging_objects" + kind: 1})
	change(e, it, func(r *fixture.Resource) { delete(r.Spec.Fields, "closed") })
	awaitSeries(e, "a repaired failure", registry, map[string]float64{
		failing: 0, "trueup_converging_objects" + kind: 0, "trueup_converge_duration_seconds" + kind: 2,
	})

	got, err := series(registry)
	if err != nil {
		t.Fatal(err)
	}
	for name := range got {
		if strings.Contains(name, "two.dots") || strings.Contains(name, "it-") || strings.Contains(name, e.Namespace) {
			t.Errorf("a label contains the name of an object: %s", name)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{
		`"msg"="Reconciled" "controller"="resource"`,
		`"causes"=["Object Resource.fixture.trueup.dev ` + e.Namespace + `/it Created`,
		`"create ConfigMap ` + e.Namespace + `/it-one"`,
		`"failed"=["` + root + `.1.Gate"] "error"="` + root + `.1.Gate: the gate is closed"`,
	} {
		if !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("no line contains %s:\n%s", want, strings.Join(lines, "\n"))
		}
	}
}
