// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	calls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_handler_calls_total",
		Help: "Calls of handlers, by action and by result: done, requeued, failed, " +
			"exhausted or panicked.",
	}, []string{"handler", "action", "result"})

	exhausted = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trueup_handler_retries_exhausted_total",
		Help: "Resources that a handler has given up on until they change.",
	}, []string{"handler"})

	remembered = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "trueup_handler_resources",
		Help: "Resources that a handler remembers.",
	}, []string{"handler"})
)

func init() {
	metrics.Registry.MustRegister(calls, exhausted, remembered)
}
