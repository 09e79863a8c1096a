// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"trueup.dev/observe"
)

// reported are the metrics of events that reconcilers, handlers and informers report.
type reported struct {
	haltedRetries  *prometheus.CounterVec
	haltedWaits    *prometheus.CounterVec
	reflected      *prometheus.CounterVec
	unwatched      *prometheus.CounterVec
	loops          *prometheus.CounterVec
	loopWaits      *prometheus.CounterVec
	staleWaits     *prometheus.CounterVec
	staleTimeouts  *prometheus.CounterVec
	leaseWaits     *prometheus.CounterVec
	schemaFailures *prometheus.CounterVec
	indexFailures  *prometheus.CounterVec
	startFailures  *prometheus.CounterVec
	storeErrors    *prometheus.CounterVec
	liveReads      *prometheus.CounterVec
	calls          *prometheus.CounterVec
	exhausted      *prometheus.CounterVec
	remembered     *prometheus.GaugeVec
	inactive       *prometheus.GaugeVec
}

func newReported() reported {
	return reported{
		haltedRetries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_halted_retries_total",
			Help: "Number of requests that halted without a RequeueAfter and are retried with back-off.",
		}, []string{"controller"}),
		haltedWaits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_halted_waits_total",
			Help: "Number of requests that halted on tracked objects and are retried when one of the objects changes.",
		}, []string{"controller"}),
		reflected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_reflected_errors_total",
			Help: "Number of errors of children that were reflected on the status of the parent and not returned.",
		}, []string{"controller", "reason"}),
		unwatched: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_tracked_unwatched_total",
			Help: "Number of tracked references to objects of kinds that the controller does not watch with EnqueueTracked: " +
				"changes of these objects do not trigger reconciles.",
		}, []string{"controller", "kind"}),
		loops: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_hot_loops_total",
			Help: "Number of detected hot loops, by cause. self: the controller reconciled a resource repeatedly because of " +
				"its own previous reconcile. writer: the controller and another field manager change a field back and forth, " +
				"or create and delete an object in turns. refused: the API server repeatedly stores another value than the " +
				"controller sends.",
		}, []string{"controller", "cause"}),
		loopWaits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_hot_loop_waits_total",
			Help: "Number of requests that were delayed because the resource is in a hot loop.",
		}, []string{"controller"}),
		staleWaits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_stale_cache_waits_total",
			Help: "Reconciles deferred because a cache had not observed an earlier write of the controller.",
		}, []string{"controller"}),
		staleTimeouts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_stale_cache_timeouts_total",
			Help: "Reconciles that read from the API server because a cache did not observe an earlier write " +
				"of the controller in time.",
		}, []string{"controller"}),
		leaseWaits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_lease_waits_total",
			Help: "Reconciles deferred because another process may hold the lease of the manager.",
		}, []string{"controller"}),
		schemaFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_schema_failures_total",
			Help: "Number of failed attempts to read the defaults of a kind from the API server. " +
				"The next attempt follows after ten minutes.",
		}, []string{"kind"}),
		indexFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_owner_index_failures_total",
			Help: "Number of failed attempts to index a kind of children by owner when a controller starts. " +
				"Each attempt is retried.",
		}, []string{"kind"}),
		startFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_informer_start_failures_total",
			Help: "Failed attempts to start an informer. Each attempt is retried.",
		}, []string{"kind"}),
		storeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_informer_store_errors_total",
			Help: "Calls of the store of an informer that have failed. What they were for is read from the API server when it " +
				"is needed.",
		}, []string{"kind", "operation"}),
		liveReads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_informer_live_reads_total",
			Help: "Reads from the API server because the store of an informer did not have what it should.",
		}, []string{"kind"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_handler_calls_total",
			Help: "Calls of handlers, by action and by result: done, requeued, failed, " +
				"exhausted or panicked.",
		}, []string{"handler", "action", "result"}),
		exhausted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_handler_retries_exhausted_total",
			Help: "Resources that a handler has given up on until they change.",
		}, []string{"handler"}),
		remembered: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trueup_handler_resources",
			Help: "Resources that a handler remembers.",
		}, []string{"handler"}),
		inactive: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trueup_inactive_steps",
			Help: "Steps that do not run, because the API server does not serve a kind that they need.",
		}, []string{"controller", "step", "kind"}),
	}
}

func (m *reported) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.haltedRetries, m.haltedWaits, m.reflected, m.unwatched, m.loops, m.loopWaits, m.staleWaits, m.staleTimeouts,
		m.leaseWaits, m.schemaFailures, m.indexFailures, m.startFailures, m.storeErrors, m.liveReads, m.calls, m.exhausted,
		m.remembered, m.inactive,
	}
}

func (m *reported) observe(event observe.Reported) {
	switch e := event.(type) {
	case *observe.StaleWait:
		if e.Reconciler != "" {
			m.staleWaits.WithLabelValues(controllerOf(e.Run, e.Reconciler)).Inc()
		}
	case *observe.Deferred:
		m.deferred(e)
	case *observe.LoopFound:
		if e.Cause != "" { // otherwise it is repeated while the loop lasts
			m.loops.WithLabelValues(controllerOf(e.Run, e.Reconciler), string(e.Cause)).Inc()
		}
	case *observe.ErrorReflected:
		m.reflected.WithLabelValues(controllerOf(e.Run, e.Reconciler), e.Reason).Inc()
	case *observe.TrackedUnwatched:
		m.unwatched.WithLabelValues(controllerOf(e.Run, e.Reconciler), e.Kind.String()).Inc()
	case *observe.AttemptFailed:
		m.attemptFailed(e)
	case *observe.StoreMissed:
		m.liveReads.WithLabelValues(e.Kind.String()).Inc()
	case *observe.HandlerCalled:
		m.calls.WithLabelValues(e.Handler, e.Action, e.Result).Inc()
		if e.Exhausted {
			m.exhausted.WithLabelValues(e.Handler).Inc()
		}
	}
}

// controllerOf returns the name of the controller of an event, or the name of the root reconciler if no controller runs
// it.
func controllerOf(run *observe.Run, reconciler string) string {
	if run != nil && run.Controller != "" {
		return run.Controller
	}
	return reconciler
}

func (m *reported) deferred(e *observe.Deferred) {
	switch e.Reason {
	case observe.DeferHaltRetry:
		m.haltedRetries.WithLabelValues(controllerOf(e.Run, e.Reconciler)).Inc()
	case observe.DeferHaltWait:
		m.haltedWaits.WithLabelValues(controllerOf(e.Run, e.Reconciler)).Inc()
	case observe.DeferLoop:
		m.loopWaits.WithLabelValues(controllerOf(e.Run, e.Reconciler)).Inc()
	case observe.DeferStaleTimeout:
		m.staleTimeouts.WithLabelValues(controllerOf(e.Run, e.Reconciler)).Inc()
	case observe.DeferLease:
		m.leaseWaits.WithLabelValues(controllerOf(e.Run, e.Reconciler)).Inc()
	}
}

func (m *reported) attemptFailed(e *observe.AttemptFailed) {
	switch e.Attempt {
	case observe.ReadSchema:
		m.schemaFailures.WithLabelValues(e.Kind.Kind).Inc()
	case observe.IndexOwners:
		m.indexFailures.WithLabelValues(e.Kind.Kind).Inc()
	case observe.StartInformer:
		m.startFailures.WithLabelValues(e.Kind.String()).Inc()
	case observe.UseStore:
		m.storeErrors.WithLabelValues(e.Kind.String(), e.Operation).Inc()
	}
}
