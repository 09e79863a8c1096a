// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	staleWaits = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_stale_cache_waits_total",
		Help: "Reconciles put off because a cache had not seen what the controller wrote before.",
	}, []string{"reconciler"})

	staleTimeouts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_stale_cache_timeouts_total",
		Help: "Reconciles that read from the API server because a cache had not seen in time what the controller wrote before.",
	}, []string{"reconciler"})
)

func init() {
	metrics.Registry.MustRegister(staleWaits, staleTimeouts)
}
