// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "trueup.dev/examples/mykind/api/v1"
	"trueup.dev/examples/mykind/controller"
	"trueup.dev/examples/mykind/infosystem"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/sandbox"
	"trueup.dev/simple"
)

// world is a namespace of a real API, and a server of the external system.
type world struct {
	*apitest.Env
	style  controller.Style
	system *infosystem.Server
	info   *infosystem.Client

	mu       sync.Mutex
	requests []string
}

func newWorld(t *testing.T, style controller.Style) *world {
	t.Helper()
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := v1.Kind().AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{Env: apitest.New(t, scheme, sandbox.TestOptions{CRDs: []any{"config/mykinds.yaml"}}), style: style}
	w.system = &infosystem.Server{OnChange: func(method, name string, info infosystem.Info) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.requests = append(w.requests, fmt.Sprintf("%s %s %s", method, name[len(w.Namespace)+1:], info.SomeInfo))
	}}
	server := httptest.NewServer(w.system)
	t.Cleanup(server.Close)
	var err error
	w.info, err = infosystem.NewClient(server.URL)
	w.Must(err)
	return w
}

// start starts the app. The app stops with the test, or earlier when the returned function is called.
func (w *world) start() (stop func()) {
	w.Helper()
	app, err := controller.NewApp(w.RESTConfig(), w.info, w.style, func(config *simple.AppConfig) {
		config.InformerConfig.InformerOptions.Namespaces = []string{w.Namespace}
		config.LeaderElection.Disabled = true
		config.MetricsBindAddress, config.HealthBindAddress = "0", "0"
		// several apps run in one process
		config.ManagerOptions = func(options *ctrl.Options) { options.Controller.SkipNameValidation = new(true) }
	})
	w.Must(err)
	return w.Go("the app", app.Run)
}

func (w *world) create(name, info string) {
	w.Helper()
	w.Must(w.Create(w.Context(), &v1.MyKind{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec:       v1.MyKindSpec{SomeInfo: info, OtherInfo: "other"},
	}))
}

func (w *world) patch(name, patch string) {
	w.Helper()
	obj := &v1.MyKind{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	w.Must(w.Patch(w.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

func (w *world) delete(name string) {
	w.Helper()
	w.Must(w.Delete(w.Context(), &v1.MyKind{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}))
}

// waitForInfos waits until the external system has exactly these infos, and each status records that.
func (w *world) waitForInfos(want map[string]string) {
	w.Helper()
	w.Eventually(func() error {
		known := map[string]string{}
		for name, info := range w.system.Infos() {
			known[name[len(w.Namespace)+1:]] = info.SomeInfo
		}
		if diff := cmp.Diff(want, known); diff != "" {
			return fmt.Errorf("infos of the external system (-want +got):\n%s", diff)
		}
		list := &v1.MyKindList{}
		if err := w.List(w.Context(), list, client.InNamespace(w.Namespace)); err != nil {
			return err
		}
		if len(list.Items) != len(want) {
			return fmt.Errorf("%d MyKinds exist, want %d", len(list.Items), len(want))
		}
		for _, obj := range list.Items {
			if obj.Status.LastAppliedGeneration != obj.Generation {
				return fmt.Errorf(
					"generation %d of %s is applied, want %d", obj.Status.LastAppliedGeneration, obj.Name, obj.Generation,
				)
			}
		}
		return nil
	})
}

func (w *world) allRequests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

func inBothStyles(t *testing.T, test func(w *world)) {
	for _, style := range []controller.Style{controller.Reconciler, controller.Watcher} {
		t.Run(string(style), func(t *testing.T) { test(newWorld(t, style)) })
	}
}

func TestMyKind_isReportedOnce(t *testing.T) {
	inBothStyles(t, func(w *world) {
		w.start()
		w.create("it", "one")
		w.waitForInfos(map[string]string{"it": "one"})
		w.patch("it", `{"metadata":{"labels":{"no":"news"}}}`)
		w.patch("it", `{"spec":{"someInfo":"two"}}`)
		w.waitForInfos(map[string]string{"it": "two"})
		w.delete("it")
		w.waitForInfos(map[string]string{})
		if diff := cmp.Diff([]string{"PUT it one", "PUT it two", "DELETE it two"}, w.allRequests()); diff != "" {
			w.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

func TestMyKind_outage(t *testing.T) {
	inBothStyles(t, func(w *world) {
		w.start()
		w.create("kept", "one")
		w.create("deleted", "one")
		w.waitForInfos(map[string]string{"kept": "one", "deleted": "one"})
		w.system.SetDown(true)
		rejected := w.system.Rejected()
		w.patch("kept", `{"spec":{"someInfo":"two"}}`)
		w.delete("deleted")
		w.create("new", "one")
		w.Eventually(func() error {
			if tries := w.system.Rejected() - rejected; tries < 3 {
				return fmt.Errorf("%d requests were rejected, want 3", tries)
			}
			return nil
		})
		w.patch("kept", `{"spec":{"someInfo":"three"}}`)
		w.system.SetDown(false)
		w.waitForInfos(map[string]string{"kept": "three", "new": "one"})
	})
}

func TestMyKind_restart(t *testing.T) {
	inBothStyles(t, func(w *world) {
		stop := w.start()
		for _, name := range []string{"same", "changed", "deleted"} {
			w.create(name, "one")
		}
		w.waitForInfos(map[string]string{"same": "one", "changed": "one", "deleted": "one"})
		requests := len(w.allRequests())
		stop()
		w.patch("changed", `{"spec":{"someInfo":"two"}}`)
		w.delete("deleted")
		w.create("new", "one")
		w.start()
		w.waitForInfos(map[string]string{"same": "one", "changed": "two", "new": "one"})
		news := w.allRequests()[requests:]
		slices.Sort(news)
		if diff := cmp.Diff([]string{"DELETE deleted one", "PUT changed two", "PUT new one"}, news); diff != "" {
			w.Errorf("requests after the restart (-want +got):\n%s", diff)
		}
	})
}

func TestMyKind_rejected(t *testing.T) {
	inBothStyles(t, func(w *world) {
		w.start()
		w.create("it", "") // the external system rejects an empty info
		w.Eventually(func() error {
			if w.system.Rejected() < 2 {
				return fmt.Errorf("%d requests were rejected, want 2", w.system.Rejected())
			}
			return nil
		})
		w.patch("it", `{"spec":{"someInfo":"some"}}`)
		w.waitForInfos(map[string]string{"it": "some"})
	})
}

func TestNewApp_unknownStyle(t *testing.T) {
	_, err := controller.NewApp(nil, nil, "other", nil)
	if err == nil || err.Error() != `unknown style "other": must be "reconciler" or "watcher"` {
		t.Errorf("NewApp = %v", err)
	}
}
