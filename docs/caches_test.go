// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
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
