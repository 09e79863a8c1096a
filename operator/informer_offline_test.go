// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/internal/apitest"
	"trueup.dev/resource"
)

// Set-up makes no request. While the API server is unreachable, the manager is not ready and reports the reason.
func TestWithInformer_NeedsNoAPIServer(t *testing.T) {
	kind := resource.Kind{
		Schema: resource.NewSimpleSchema(
			"", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{}, resource.WithKind("ConfigMap"),
		),
	}
	for name, supplier := range map[string]InformerSupplier{
		"in memory": DefaultInformerSupplier,
		"in a store": CustomCacheInformerSupplier(func(resource.Kind) (Store, error) {
			return NewMemoryStore(), nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
				Metrics: metricsserver.Options{BindAddress: "0"},
			})
			must(t, err)
			informer, err := supplier(kind, mgr, InformerOptions{})
			must(t, err)
			_, err = WithInformer(mgr, "it", informer)
			must(t, err)

			started := startedInformer{informer, "ConfigMap", mgr.GetLogger()}
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

// The manager does not wait for an informer that is removed before it has synced.
func TestScopedManager_DoesNotWaitForRemovedInformers(t *testing.T) {
	scope, remove := context.WithCancel(t.Context())
	mgr := &addedTo{}
	must(t, (&scopedManager{Manager: mgr, scope: scope}).Add(startedInformer{Informer: neverSynced{}}))
	synced := make(chan bool)
	go func() { synced <- mgr.added.(hasCache).GetCache().WaitForCacheSync(t.Context()) }()
	remove()
	if !<-synced {
		t.Error("the manager would wait forever")
	}
}

type addedTo struct {
	ctrl.Manager
	added manager.Runnable
}

func (m *addedTo) Add(runnable manager.Runnable) error {
	m.added = runnable
	return nil
}

type neverSynced struct{ Informer }

func (neverSynced) Object() client.Object { return &corev1.ConfigMap{} }

func (neverSynced) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, nil
}

func (neverSynced) WaitForCacheSync(ctx context.Context) bool {
	<-ctx.Done()
	return false
}
