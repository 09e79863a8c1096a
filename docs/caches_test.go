// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
)

// region caches-config
func Config(mgr ctrl.Manager) reconcilers.Config {
	c := reconcilers.NewConfig(mgr, &websitev1.Website{}, 10*time.Hour)
	c.StaleReadsTimeout = 5 * time.Second // the default is 10 seconds
	return c
}

// endregion

// region caches-off
func WithoutWaiting(c reconcilers.Config) reconcilers.Config {
	c.AllowStaleReads = true
	return c
}

// endregion

// region caches-served
func Monitored(
	monitor reconcilers.SubReconciler[*websitev1.Website],
) reconcilers.SubReconciler[*websitev1.Website] {
	serviceMonitor := &unstructured.Unstructured{}
	serviceMonitor.SetAPIVersion("monitoring.coreos.com/v1")
	serviceMonitor.SetKind("ServiceMonitor")
	return &reconcilers.WhileServed[*websitev1.Website]{
		Name:       "Monitoring",
		Kinds:      []client.Object{serviceMonitor},
		Reconciler: monitor, // for example a ChildReconciler for a ServiceMonitor
	}
}

// endregion

func TestCaches_theStepRunsOnlyWhileItsKindIsServed(t *testing.T) {
	ran := false
	step := Monitored(&reconcilers.SyncReconciler[*websitev1.Website]{
		Sync: func(context.Context, *websitev1.Website) error {
			ran = true
			return nil
		},
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	config := reconcilers.Config{Client: fake.NewClientBuilder().WithRESTMapper(mapper).Build()}
	ctx := reconcilers.StashConfig(t.Context(), config)
	for _, served := range []bool{false, true} {
		if served {
			mapper.Add(schema.GroupVersionKind{
				Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor",
			}, meta.RESTScopeNamespace)
		}
		if _, err := step.Reconcile(ctx, &websitev1.Website{}); err != nil || ran != served {
			t.Errorf("served %t: ran %t, error %v", served, ran, err)
		}
	}
}

func TestCaches_theConfigOfAnotherClusterIsTheSame(t *testing.T) {
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://nowhere.invalid"}, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := WithoutWaiting(Config(mgr)).WithCluster(mgr)
	if !c.AllowStaleReads || c.StaleReadsTimeout != 5*time.Second {
		t.Errorf("WithCluster gives AllowStaleReads %v, StaleReadsTimeout %v", c.AllowStaleReads, c.StaleReadsTimeout)
	}
}
