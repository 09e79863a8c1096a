// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	staleWaits = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_stale_cache_waits_total",
		Help: "Reconciles deferred because a cache had not observed an earlier write of the controller.",
	}, []string{"controller"})

	staleTimeouts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_stale_cache_timeouts_total",
		Help: "Reconciles that read from the API server because a cache did not observe an earlier write " +
			"of the controller in time.",
	}, []string{"controller"})
)

func init() {
	metrics.Registry.MustRegister(staleWaits, staleTimeouts)
}
