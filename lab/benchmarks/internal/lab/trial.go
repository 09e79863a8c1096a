// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"

	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/report"
	"trueup.dev/lab/benchmarks/internal/traffic"
	"trueup.dev/sandbox"
)

// Namespace is the namespace of all objects of a measurement.
const Namespace = "benchmark"

// closing limits the time of the cleanup.
const closing = 2 * time.Minute

// creators is the number of concurrent writers that create the objects before a measurement.
const creators = 32

// Trial is one measurement of one contender at one size.
type Trial struct {
	// Contender is the name of a contender in package report.
	Contender string
	// Size is interpreted by the workload.
	Size int
	// Live reads and writes without a cache, and is not counted.
	Live client.Client
	// Latency is added to every request of the controller. Default: none.
	Latency time.Duration

	workload   Workload
	options    Options
	sandbox    *sandbox.Sandbox
	kubernetes string
	scheme     *kruntime.Scheme
	counter    traffic.Counter
	controller *running
	// heapAtRest is the used memory before the first measurement, and heapBefore before this one.
	heapAtRest, heapBefore uint64
	// residentBefore is the resident memory before this measurement.
	residentBefore uint64

	sample  report.Sample
	metrics []report.Metric
	notes   []string
}

// Report records a value. A later value for the same metric replaces an earlier one.
func (t *Trial) Report(metric report.Metric, value float64) {
	if _, ok := t.sample.Values[metric.Name]; !ok {
		t.metrics = append(t.metrics, metric)
	}
	t.sample.Values[metric.Name] = value
}

// tallied are the metrics in the order in which they were reported, tallies last.
func (t *Trial) tallied() []report.Metric {
	isTally := func(m report.Metric) bool { return m.Tally }
	plain := slices.DeleteFunc(slices.Clone(t.metrics), isTally)
	return append(plain, slices.DeleteFunc(slices.Clone(t.metrics), func(m report.Metric) bool { return !isTally(m) })...)
}

// Note adds text to the progress line of this measurement.
func (t *Trial) Note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

func (t *Trial) open(ctx context.Context) error {
	t.scheme = kruntime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(t.scheme), api.AddToScheme(t.scheme)); err != nil {
		return err
	}
	var err error
	if t.sandbox, err = sandbox.Start(ctx, t.options.Sandbox); err != nil {
		return err
	}
	if err := t.sandbox.InstallCRDs(ctx, api.CRDs); err != nil {
		return err
	}
	server, err := discovery.NewDiscoveryClientForConfig(t.sandbox.RESTConfig())
	if err != nil {
		return err
	}
	version, err := server.ServerVersion()
	if err != nil {
		return err
	}
	t.kubernetes = version.GitVersion
	if t.Live, err = client.New(t.sandbox.RESTConfig(), client.Options{Scheme: t.scheme}); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	return client.IgnoreAlreadyExists(t.Live.Create(ctx, namespace))
}

// close stops everything that was started and, on an existing cluster, removes everything that was created. The context
// of the trial may have ended. If a stop must be forced, it is only noted, because the earlier measurements remain
// valid.
func (t *Trial) close() error {
	if t.sandbox == nil {
		return nil
	}
	var errs []error
	if t.controller != nil {
		t.noteError(t.controller.stop())
	}
	if t.sandbox.Dir() == "" && t.Live != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		for _, obj := range []client.Object{&api.Widget{}, &corev1.ConfigMap{}, &corev1.Event{}} {
			errs = append(errs, t.Live.DeleteAllOf(ctx, obj, client.InNamespace(Namespace)))
		}
	}
	t.noteError(t.sandbox.Stop())
	return errors.Join(errs...)
}

func (t *Trial) noteError(err error) {
	if err != nil {
		t.Note("%v", err)
	}
}

// Create creates objects, as fast as possible.
func (t *Trial) Create(ctx context.Context, count int, object func(i int) client.Object) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range count {
		group.Go(func() error { return t.Live.Create(ctx, object(i)) })
	}
	return group.Wait()
}
