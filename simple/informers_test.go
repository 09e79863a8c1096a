// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"errors"
	"net"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/informer"
	"trueup.dev/operator"
)

func TestInformerController_AddsAndRemovesInformersWhileRunning(t *testing.T) {
	e, first, second := newEnv(t), &record{}, &record{}
	scheme := runtime.NewScheme()
	e.Must(errors.Join(clientgoscheme.AddToScheme(scheme), widgetKind.AddToScheme(scheme)))
	mgr, err := ctrl.NewManager(e.RESTConfig(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{
			SkipNameValidation: new(true),
		},
	})
	e.Must(err)
	informer := func(team string) informer.Informer {
		made, err := informer.DefaultSupplier(widgetKind, mgr, informer.Options{
			Namespaces: []string{e.Namespace}, LabelFilters: []string{"team=" + team},
		})
		e.Must(err)
		return made
	}
	add := func(name, team string) {
		widget := newWidget(name, "")
		widget.Labels = map[string]string{"team": team}
		e.Add(widget)
	}
	red, blue := informer("red"), informer("blue")
	controller := operator.NewInformerController(operator.InformerControllerConfig{Manager: mgr})
	e.Must(errors.Join(controller.AddInformer(red, "first"), controller.AddWatcher(first.watcher(), "first")))
	e.Go("the controller", controller.Run)
	add("red-1", "red")
	add("blue-1", "blue")
	e.Eventually(func() error { return first.has("add red-1") })

	// Add a kind while the controller runs, and a second informer to a kind that runs.
	if err := controller.AddInformer(blue, "second"); err == nil {
		t.Error("an informer without handlers: no error")
	}
	e.Must(controller.AddWatcher(second.watcher(), "second"))
	e.Must(controller.AddInformer(blue, "second"))
	e.Eventually(func() error { return second.has("add blue-1") })
	green := informer("green")
	e.Must(controller.AddInformer(green, "first"))
	add("green-1", "green")
	e.Eventually(func() error { return first.has("add green-1") })
	for what, err := range map[string]error{
		"a handler of what runs":           controller.AddWatcher(second.watcher(), "second"),
		"an informer that runs already":    controller.AddInformer(red, "second"),
		"an informer that runs, once more": controller.AddInformer(blue, "second"),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}

	// A removed informer delivers no events, and the others continue.
	e.Must(controller.RemoveInformer(red, "first"))
	if err := controller.AddInformer(red, "first"); err == nil {
		t.Error("an informer that was removed: no error")
	}
	add("red-2", "red")
	e.Must(controller.AddInformer(informer("red"), "first")) // has all objects, including those created in between
	add("red-3", "red")
	e.Eventually(func() error { return first.has("add red-2", "add red-3") })
	add("green-2", "green")
	e.Eventually(func() error { return first.has("add green-2") })
	for _, name := range []string{"red-2", "red-3", "green-1", "green-2"} {
		if n := times(first.all(), "add "+name); n != 1 {
			t.Errorf("%s was added %d times, want once: %q", name, n, first.all())
		}
	}
	if n := times(first.all(), "add red-1"); n != 2 { // once by each informer that had it
		t.Errorf("red-1 was added %d times, want twice: %q", n, first.all())
	}
	if all := second.all(); !slices.Equal(all, []string{"add blue-1"}) {
		t.Errorf("calls of the kind that was added while running: %q", all)
	}
}

// A process may have several controllers with handlers for one kind. None of them needs the port of a metrics server.
func TestInformerController_TwoInOneProcess(t *testing.T) {
	e := newEnv(t)
	if listener, err := net.Listen("tcp", ":8080"); err == nil { // otherwise another process has the port
		defer listener.Close()
	}
	scheme := runtime.NewScheme()
	e.Must(errors.Join(clientgoscheme.AddToScheme(scheme), widgetKind.AddToScheme(scheme)))
	at, err := cluster.New(e.RESTConfig(), func(options *cluster.Options) { options.Scheme = scheme })
	e.Must(err)
	records := []*record{{}, {}}
	for _, calls := range records {
		objects, err := informer.DefaultSupplier(widgetKind, at, informer.Options{Namespaces: []string{e.Namespace}})
		e.Must(err)
		controller := operator.NewInformerController(operator.InformerControllerConfig{
			KubeConfig: e.RESTConfig(), Scheme: scheme,
		})
		e.Must(errors.Join(
			controller.AddInformer(objects, "widgets"), controller.AddWatcher(calls.watcher(), "widgets"),
		))
		e.Go("the controller", controller.Run)
	}
	e.Add(newWidget("it", ""))
	for _, calls := range records {
		e.Eventually(func() error { return calls.has("add it") })
	}
}

func times(calls []string, call string) (n int) {
	for _, c := range calls {
		if c == call {
			n++
		}
	}
	return n
}
