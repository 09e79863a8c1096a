// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
	"trueup.dev/resource"
)

// The events of an informer, also of a shard, go to the listeners of the manager of its view.
func TestView_ReportsToTheManager(t *testing.T) {
	kind := resource.Kind{
		Schema: resource.NewSimpleSchema(
			"", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{}, resource.WithKind("ConfigMap"),
		),
	}
	supplier := CustomCacheSupplier(func(resource.Kind) (Store, error) { return failing{}, nil })
	for name, tc := range map[string]struct {
		options Options
		removed bool
		want    float64
	}{
		"by default": {want: 1},
		"removed":    {removed: true},
		"a shard":    {options: Options{ShardFilter: func(client.Object) bool { return true }}, want: 1},
		"a shard, removed": {
			options: Options{ShardFilter: func(client.Object) bool { return true }}, removed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
				Metrics: metricsserver.Options{BindAddress: "0"},
			})
			must(t, err)
			if tc.removed {
				observe.Of(mgr).Remove(metrics.Default())
			}
			informer, err := supplier(kind, mgr, tc.options)
			must(t, err)
			_, err = View(mgr, "it", informer)
			must(t, err)
			if shard, ok := informer.(*shardInformer); ok {
				informer = shard.Informer
			}
			labels := map[string]string{"kind": "ConfigMap"}
			before := apitest.Counted(t, "trueup_informer_store_errors_total", labels)
			informer.(*CustomCache).store.delete(t.Context(), client.ObjectKey{Name: "a"})
			if got := apitest.Counted(t, "trueup_informer_store_errors_total", labels) - before; got != tc.want {
				t.Errorf("%v failures counted, want %v", got, tc.want)
			}
		})
	}
}

// Set-up makes no request. While the API server is unreachable, the manager is not ready and reports the reason.
func TestView_NeedsNoAPIServer(t *testing.T) {
	kind := resource.Kind{
		Schema: resource.NewSimpleSchema(
			"", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{}, resource.WithKind("ConfigMap"),
		),
	}
	for name, supplier := range map[string]Supplier{
		"in memory": DefaultSupplier,
		"in a store": CustomCacheSupplier(func(resource.Kind) (Store, error) {
			return NewMemoryStore(), nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
				Metrics: metricsserver.Options{BindAddress: "0"},
			})
			must(t, err)
			informer, err := supplier(kind, mgr, Options{})
			must(t, err)
			view, err := View(mgr, "it", informer)
			must(t, err)
			if observe.Of(view) != observe.Of(mgr) {
				t.Error("the view does not have the listeners of the manager")
			}

			started := startedInformer{informer, schema.GroupKind{Kind: "ConfigMap"}, mgr.GetLogger(), metrics.Enable(mgr)}
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
			if err := started.check(req); err == nil {
				t.Error("the informer is ready")
			} else if name == "in memory" && !strings.Contains(err.Error(), "127.0.0.1:1") {
				t.Errorf("the check does not report the reason: %v", err)
			}
			labels := map[string]string{"kind": "ConfigMap"}
			before := apitest.Counted(t, "trueup_informer_start_failures_total", labels)
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			defer cancel()
			if started.WaitForCacheSync(ctx) {
				t.Error("the cache is synced")
			}
			if name == "in memory" && apitest.Counted(t, "trueup_informer_start_failures_total", labels) < before+2 {
				t.Error("failures are not counted, or the informer is not retried")
			}
		})
	}
}
