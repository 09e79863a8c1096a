// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/informer"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

// The numbers of workers of an app and of a kind are the numbers of the kind's controller, which handles as many
// objects at the same time.
func TestWorkers(t *testing.T) {
	for name, tc := range map[string]struct {
		ofApp  uint64
		ofKind int
		want   int
	}{
		"unset":                         {want: 1},
		"of the app":                    {ofApp: 3, want: 3},
		"of the kind":                   {ofKind: 2, want: 2},
		"of the kind, and of the app":   {ofApp: 3, ofKind: 2, want: 2},
		"less in the app than the kind": {ofApp: 1, ofKind: 3, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			e, calls := newEnv(t), &barrier{size: tc.want, reached: make(chan struct{})}
			config := e.config("workers-" + e.Namespace)
			config.InformerConfig.InformerOptions.MaxConcurrentWorkers = tc.ofApp
			config.ManagedKinds = []simple.AppManagedKind{{
				Kind: widgetKind, Watcher: &simple.Watcher{AddFunc: calls.add},
				ReconcileOptions: simple.ReconcileOptions{UsePlain: true, MaxConcurrentReconciles: tc.ofKind},
			}}
			e.start(config)
			for i := range tc.want + 2 {
				e.Add(newWidget(fmt.Sprint("widget-", i), ""))
			}
			e.Eventually(func() error { return calls.ended(tc.want + 2) })
			if diff := cmp.Diff(tc.want, calls.mostAtOnce); diff != "" {
				t.Errorf("objects at the same time (-want +got):\n%s", diff)
			}
		})
	}
}

// The option of an app and of an InformerController reaches the queues of their controllers. Only the queue in which
// namespaces take turns counts requests without a priority.
func TestFairNamespaces(t *testing.T) {
	e := newEnv(t)
	scheme := runtime.NewScheme()
	e.Must(errors.Join(clientgoscheme.AddToScheme(scheme), widgetKind.AddToScheme(scheme)))
	mgr, err := ctrl.NewManager(e.RESTConfig(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	e.Must(err)
	objects, err := informer.DefaultSupplier(widgetKind, mgr, informer.Options{Namespaces: []string{e.Namespace}})
	e.Must(err)
	ofApp, ofController, name := &record{}, &record{}, "fair-"+e.Namespace
	c := operator.NewInformerController(operator.InformerControllerConfig{Manager: mgr, FairNamespaces: true})
	e.Must(errors.Join(c.AddInformer(objects, name), c.AddWatcher(ofController.watcher(), name)))
	e.Go("the controller", c.Run)

	config := e.config(name)
	config.InformerConfig.FairNamespaces = true
	config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Watcher: ofApp.watcher()}}
	e.start(config)
	e.Add(newWidget("widget", ""))
	e.Eventually(func() error { return errors.Join(ofApp.has("add widget"), ofController.has("add widget")) })

	families, err := metrics.Registry.Gather()
	e.Must(err)
	got := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if family.GetName() == "workqueue_depth" && labels["priority"] == "" {
				got[labels["controller"]] = true
			}
		}
	}
	maps.DeleteFunc(got, func(other string, _ bool) bool { // of earlier runs in this process
		return strings.HasPrefix(other, "fair-") && other != name
	})
	if diff := cmp.Diff(map[string]bool{name: true, "widgets.simple.example.com": true}, got); diff != "" {
		t.Errorf("controllers with queues without priorities (-want +got):\n%s", diff)
	}
}

// barrier holds calls until as many have begun.
type barrier struct {
	size    int
	reached chan struct{} // closed when they have

	mu                       sync.Mutex
	now, mostAtOnce, handled int
}

func (b *barrier) add(ctx context.Context, _ resource.Object) error {
	b.mu.Lock()
	b.now++
	b.mostAtOnce = max(b.mostAtOnce, b.now)
	if b.now == b.size && b.handled == 0 {
		close(b.reached)
	}
	b.mu.Unlock()
	select {
	case <-b.reached:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now--
	b.handled++
	return ctx.Err()
}

func (b *barrier) ended(calls int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handled < calls {
		return fmt.Errorf("%d of %d calls have ended, and %d at once were the most", b.handled, calls, b.mostAtOnce)
	}
	return nil
}
