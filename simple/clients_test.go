// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

// Stores can be made before the app.
func TestClients(t *testing.T) {
	e := newEnv(t)
	clients := &simple.Clients{}
	store, err := resource.NewTypedStore[*Widget](widgetKind, clients)
	e.Must(err)
	if _, err := store.Get(t.Context(), resource.Identifier{Namespace: e.Namespace, Name: "it"}); err == nil {
		t.Error("a store can be used before the app is made")
	}
	config := e.config("clients")
	config.Clients = clients
	config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Reconciler: &operator.TypedReconciler[*Widget]{
		ReconcileFunc: func(
			ctx context.Context, req operator.TypedReconcileRequest[*Widget],
		) (operator.ReconcileResult, error) {
			if req.Action == operator.ReconcileActionDeleted {
				return operator.ReconcileResult{}, nil
			}
			cached, err := store.Get(ctx, req.Object.GetStaticMetadata().Identifier())
			if err != nil {
				return operator.ReconcileResult{}, err
			}
			cached.Status.Applied = req.Object.Spec.Title
			_, err = store.UpdateSubresource(
				ctx, req.Object.GetStaticMetadata().Identifier(), resource.SubresourceStatus, cached,
			)
			return operator.ReconcileResult{}, err
		},
	}}}
	made := e.make(config)
	e.run(made)
	widget := newWidget("it", "one")
	e.Add(widget)
	e.Eventually(func() error {
		e.Must(e.Read(widget))
		if widget.Status.Applied != "one" {
			return fmt.Errorf("status = %v", widget.Status)
		}
		return nil
	})
	after, err := resource.NewTypedStore[*Widget](widgetKind, made.ClientGenerator())
	e.Must(err)
	for _, source := range []resource.ReadSource{resource.Cached, resource.Live} {
		got, err := after.Get(t.Context(), resource.IdentifierOf(widget), source)
		if err != nil || got.Spec.Title != "one" {
			t.Errorf("%s: %v, %v", source, got, err)
		}
	}
	if _, err := simple.NewApp(config); err == nil || !strings.Contains(err.Error(), "already belong to an app") {
		t.Errorf("clients belong to two apps: %v", err)
	}
	e.Must(e.Delete(t.Context(), widget))
}

// watches counts the watches of a kind.
type watches struct {
	mu    sync.Mutex
	count map[string]int
}

func (w *watches) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.URL.Query().Get("watch") == "true" {
			w.mu.Lock()
			w.count[req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]]++
			w.mu.Unlock()
		}
		return next.RoundTrip(req)
	})
}

type roundTripper func(req *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Handlers of other kinds read from the existing informer, and a kind that is listed twice with equal options has one
// informer.
func TestInformersAreShared(t *testing.T) {
	e := newEnv(t)
	var calls record
	clients, watched := &simple.Clients{}, &watches{count: map[string]int{}}
	widgets, err := resource.NewTypedStore[*Widget](widgetKind, clients)
	e.Must(err)
	config := e.config("shared")
	config.KubeConfig.Wrap(watched.wrap)
	config.Clients = clients
	config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Watcher: calls.watcher()}}
	config.UnmanagedKinds = []simple.AppUnmanagedKind{
		{Kind: configMapKind, Watcher: calls.watcher()},
		{Kind: configMapKind, Reconciler: &simple.Reconciler{ReconcileFunc: func(
			ctx context.Context, req operator.ReconcileRequest,
		) (operator.ReconcileResult, error) {
			widget, err := widgets.Get(ctx, resource.Identifier{Namespace: req.Object.GetNamespace(), Name: "it"})
			if err == nil {
				calls.add("%s has %s", req.Object.GetName(), widget.Spec.Title)
			}
			return operator.ReconcileResult{}, err
		}}},
	}
	e.Add(newWidget("it", "one"))
	e.start(config)
	e.Add(newConfigMap("map", nil))
	e.Eventually(func() error { return calls.has("add it", "add map", "map has one") })
	watched.mu.Lock()
	defer watched.mu.Unlock()
	if diff := cmp.Diff(map[string]int{"widgets": 1, "configmaps": 1}, watched.count); diff != "" {
		t.Errorf("watches (-want +got):\n%s", diff)
	}
}

// An informer with a selection does not have all objects that a handler writes. The handler must not read from it, and
// no request may wait for it.
func TestClientsOfAKindThatIsSelected(t *testing.T) {
	e := newEnv(t, crd("Gauge", "gauges", "v1", "v2"))
	var calls record
	clients := &simple.Clients{}
	maps, err := resource.NewTypedStore[*corev1.ConfigMap](configMapKind, clients)
	e.Must(err)
	config := e.config("selected")
	config.Clients = clients
	config.UnmanagedKinds = []simple.AppUnmanagedKind{
		{
			Kind: configMapKind, Watcher: calls.watcher(),
			ReconcileOptions: simple.ReconcileOptions{LabelFilters: []string{"watched=yes"}},
		},
	}
	writer := &simple.Reconciler{
		ReconcileFunc: func(ctx context.Context, req operator.ReconcileRequest) (operator.ReconcileResult, error) {
			if req.Action == operator.ReconcileActionDeleted {
				return operator.ReconcileResult{}, nil
			}
			_, err := maps.Upsert(ctx, resource.IdentifierOf(req.Object), &corev1.ConfigMap{
				Data: map[string]string{"name": req.Object.(*GadgetV1).Spec.Name},
			})
			calls.add("wrote %s", req.Object.(*GadgetV1).Spec.Name)
			return operator.ReconcileResult{}, err
		},
	}
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: gaugeV1, Reconciler: writer, ReconcileOptions: simple.ReconcileOptions{UsePlain: true}},
	}
	e.start(config)
	gauge := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"name": "one"}}}
	gauge.SetGroupVersionKind(gaugeV1.GroupVersionKind())
	gauge.SetName("it")
	e.Add(gauge)
	e.Eventually(func() error { return calls.has("wrote one") })
	timeouts := map[string]string{"controller": "gauges." + group}
	before := apitest.Counted(t, "trueup_stale_cache_timeouts_total", timeouts)
	e.patch(gauge, `{"spec":{"name":"two"}}`)
	e.Eventually(func() error { return calls.has("wrote two") })
	if n := apitest.Counted(t, "trueup_stale_cache_timeouts_total", timeouts) - before; n > 0 {
		t.Errorf("%v requests waited for a cache until the timeout", n)
	}
	e.Eventually(func() error {
		got, err := maps.Get(e.Context(), resource.IdentifierOf(gauge), resource.Cached)
		if err == nil && got.Data["name"] != "two" {
			err = fmt.Errorf("data = %v", got.Data)
		}
		return err
	})
}
