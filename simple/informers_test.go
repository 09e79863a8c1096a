// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/operator"
)

func TestInformerController_AddsAndRemovesInformersWhileRunning(t *testing.T) {
	e, early, late := newEnv(t), &record{}, &record{}
	scheme := runtime.NewScheme()
	e.Must(errors.Join(clientgoscheme.AddToScheme(scheme), widgetKind.AddToScheme(scheme)))
	mgr, err := ctrl.NewManager(e.RESTConfig(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{
			SkipNameValidation: new(true),
		},
	})
	e.Must(err)
	informer := func(team string) operator.Informer {
		made, err := operator.DefaultInformerSupplier(widgetKind, mgr, operator.InformerOptions{
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
	e.Must(errors.Join(controller.AddInformer(red, "early"), controller.AddWatcher(early.watcher(), "early")))
	e.Go("the controller", controller.Run)
	add("red-1", "red")
	add("blue-1", "blue")
	e.Eventually(func() error { return early.has("add red-1") })

	// A kind that is added while the controller runs, and a second informer of a kind that runs.
	if err := controller.AddInformer(blue, "late"); err == nil {
		t.Error("an informer without handlers is not refused")
	}
	e.Must(controller.AddWatcher(late.watcher(), "late"))
	e.Must(controller.AddInformer(blue, "late"))
	e.Eventually(func() error { return late.has("add blue-1") })
	green := informer("green")
	e.Must(controller.AddInformer(green, "early"))
	add("green-1", "green")
	e.Eventually(func() error { return early.has("add green-1") })
	for what, err := range map[string]error{
		"a handler of what runs":           controller.AddWatcher(late.watcher(), "late"),
		"an informer that runs already":    controller.AddInformer(red, "late"),
		"an informer that runs, once more": controller.AddInformer(blue, "late"),
	} {
		if err == nil {
			t.Errorf("%s is not refused", what)
		}
	}

	// What is removed is handled no more, and the rest goes on.
	e.Must(controller.RemoveInformer(red, "early"))
	if err := controller.AddInformer(red, "early"); err == nil {
		t.Error("an informer that was removed is not refused")
	}
	add("red-2", "red")
	e.Must(controller.AddInformer(informer("red"), "early")) // which has all objects, those that came in between as well
	add("red-3", "red")
	e.Eventually(func() error { return early.has("add red-2", "add red-3") })
	add("green-2", "green")
	e.Eventually(func() error { return early.has("add green-2") })
	for _, name := range []string{"red-2", "red-3", "green-1", "green-2"} {
		if n := times(early.all(), "add "+name); n != 1 {
			t.Errorf("%s was added %d times, want once: %q", name, n, early.all())
		}
	}
	if n := times(early.all(), "add red-1"); n != 2 { // once by each informer that had it
		t.Errorf("red-1 was added %d times, want twice: %q", n, early.all())
	}
	if all := late.all(); !slices.Equal(all, []string{"add blue-1"}) {
		t.Errorf("calls of the kind that was added late: %q", all)
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
