// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/offline"
	"trueup.dev/observe"
)

// fakeManager has only a cache.
type fakeManager struct {
	manager.Manager
	cache cache.Cache
}

func (m *fakeManager) GetCache() cache.Cache { return m.cache }

// wrapper is another type for the same manager.
type wrapper struct{ manager.Manager }

func newManager() *fakeManager { return &fakeManager{cache: &informertest.FakeInformers{}} }

func TestOf(t *testing.T) {
	mgr := newManager()
	hub := observe.Of(mgr)
	if hub != observe.Of(mgr) || hub != observe.Of(&wrapper{mgr}) {
		t.Error("one manager has several hubs")
	}
	if hub == observe.Of(newManager()) {
		t.Error("two managers have one hub")
	}
}

// TestReconcilerOfAController tests that the hub knows the reconciler of a controller, and does not keep it in memory.
func TestReconcilerOfAController(t *testing.T) {
	collected := make(chan bool)
	func() {
		mgr := offlineManager(t)
		reconciler := &managedReconciler{mgr}
		bldr := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Named("known").
			WithOptions(controller.Options{SkipNameValidation: new(true)})
		if err := observe.Controller(bldr).Complete(reconciler); err != nil {
			t.Fatal(err)
		}
		if got := observe.Of(mgr).Reconciler("known"); got != reconcile.Reconciler(reconciler) {
			t.Errorf("got reconciler %v", got)
		}
		if got := observe.Of(mgr).Reconciler("unknown"); got != nil {
			t.Errorf("got reconciler %v of an unknown controller", got)
		}
		if got := (*observe.Hub)(nil).Reconciler("known"); got != nil {
			t.Errorf("got reconciler %v without a hub", got)
		}
		runtime.AddCleanup(reconciler, func(done chan bool) { close(done) }, collected)
	}()
	await(t, collected)
}

// managedReconciler refers to its manager, as most reconcilers do.
type managedReconciler struct{ manager.Manager }

func (*managedReconciler) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

// offlineManager returns a manager that needs no API.
func offlineManager(t *testing.T) manager.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager((&offline.Cluster{}).GetConfig(), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return offline.NewMapper(clientgoscheme.Scheme), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// await collects garbage until what a cleanup belongs to is collected.
func await(t *testing.T, collected chan bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		runtime.GC()
		select {
		case <-collected:
			return
		default:
		}
	}
	t.Fatal("it was not collected")
}

// TestOf_keepsNoManager tests that a hub does not keep its manager in memory.
func TestOf_keepsNoManager(t *testing.T) {
	collected := make(chan bool)
	func() {
		mgr := newManager()
		observe.Of(mgr).Add(observe.Nop)
		runtime.AddCleanup(mgr, func(done chan bool) { close(done) }, collected)
	}()
	await(t, collected)
}

func TestHub_Add(t *testing.T) {
	hub := &observe.Hub{}
	got := ""
	add := func(name string) func() {
		return hub.Add(observe.Func(func(context.Context, observe.Event) { got += name }))
	}
	removeA, removeB := add("a"), add("b")
	hub.Observe(t.Context(), &observe.ReconcileStarted{})
	removeA()
	removeA()
	hub.Observe(t.Context(), &observe.ReconcileStarted{})
	removeB()
	hub.Observe(t.Context(), &observe.ReconcileStarted{})
	if want := "abb"; got != want || hub.Enabled() {
		t.Errorf("listeners called: %q, want %q; enabled: %t", got, want, hub.Enabled())
	}
	var none *observe.Hub
	if none.Enabled() || none.Observe(t.Context(), &observe.ReconcileStarted{}) != t.Context() {
		t.Error("a nil hub has listeners")
	}
}

func TestHub_AddDefault(t *testing.T) {
	calls := 0
	listener := observe.Func(func(context.Context, observe.Event) { calls++ })
	for name, tc := range map[string]struct {
		prepare func(*observe.Hub)
		want    int
	}{
		"enabled by default": {prepare: func(h *observe.Hub) { h.AddDefault(listener) }, want: 1},
		"added several times": {
			prepare: func(h *observe.Hub) { h.Add(listener); h.AddDefault(listener); h.Add(listener) }, want: 1,
		},
		"removed before":        {prepare: func(h *observe.Hub) { h.Remove(listener); h.AddDefault(listener) }},
		"removed afterwards":    {prepare: func(h *observe.Hub) { h.AddDefault(listener); h.Remove(listener) }},
		"added after a removal": {prepare: func(h *observe.Hub) { h.Remove(listener); h.Add(listener) }, want: 1},
		"another one is removed": {
			prepare: func(h *observe.Hub) { h.Remove(observe.Nop); h.AddDefault(listener) }, want: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub, before := &observe.Hub{}, calls
			tc.prepare(hub)
			hub.Observe(t.Context(), &observe.ReconcileStarted{})
			if got := calls - before; got != tc.want {
				t.Errorf("called %d times, want %d", got, tc.want)
			}
		})
	}
}
