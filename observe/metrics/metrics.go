// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"trueup.dev/observe"
)

// maxObjects is the number of failing objects, and of objects that have not converged, that are kept in memory.
const maxObjects = 10_000

// Default returns the listener whose metrics are registered with the registry of controller-runtime. It is the same for
// each call, and for all managers of a program.
func Default() observe.Listener { return defaultListener() }

var defaultListener = sync.OnceValue(func() observe.Listener {
	listener, err := New(metrics.Registry)
	if err != nil {
		panic(err) // the names are unique in this module, and no other module uses the prefix
	}
	return listener
})

// Enable adds [Default] to the hub of a manager, unless it was removed from that hub, and returns the hub. A manager
// that is nil stands for what belongs to no manager, see [observe.Of].
func Enable(mgr manager.Manager) *observe.Hub {
	if mgr == nil {
		return enabledWithoutManager()
	}
	hub := observe.Of(mgr)
	hub.AddDefault(Default())
	return hub
}

var enabledWithoutManager = sync.OnceValue(func() *observe.Hub {
	hub := observe.Of(nil)
	hub.AddDefault(Default())
	return hub
})

// New returns a listener and registers its metrics. It returns an error if a metric of the same name is registered.
//
// The listener keeps at most 10,000 failing objects, and 10,000 objects that have not converged. More failing objects
// are not counted, and each further object that has not converged replaces another one. A controller has at most 500
// steps with a label of their own. Further ones have the label "other". The items of a loop and of a set of children
// share the label "*".
//
// The listener is safe for concurrent use. It may be added to several hubs.
func New(registerer prometheus.Registerer) (observe.Listener, error) {
	l := &listener{vectors: newVectors(), reported: newReported()}
	l.writes.counters = map[writeKey]prometheus.Counter{}
	all := append(l.all(), l.reported.all()...)
	for i, collector := range all {
		if err := registerer.Register(collector); err != nil {
			for _, registered := range all[:i] {
				registerer.Unregister(registered)
			}
			return nil, err
		}
	}
	return l, nil
}

type listener struct {
	vectors
	reported    reported
	controllers sync.Map // *controller by name
	writes      writes
	failing     failing
	stuck       stuck
	converging  converging
	clusters    clusters
}

// Observe implements [observe.Listener]. It returns ctx.
func (l *listener) Observe(ctx context.Context, event observe.Event) context.Context {
	switch e := event.(type) {
	case *observe.ReconcileStarted:
		c := l.controller(e.Run.Controller)
		e.Run.Attach(l, c)
		c.started(e.Run)
		l.converging.started(l, e.Run)
	case *observe.StepStarted:
		if e.Item && len(e.Path) > 0 {
			l.of(e.Run).addItem(e.Path)
		}
	case *observe.StepFinished:
		if len(e.Path) > 0 {
			l.stepFinished(e)
		}
	case *observe.Call:
		if e.IsWrite() {
			l.writes.count(l, e)
			if len(e.Dropped) > 0 && e.Run != nil {
				l.dropped.WithLabelValues(e.Run.Controller, e.Kind.GroupKind().String()).Add(float64(len(e.Dropped)))
			}
			l.converging.written(e)
		}
	case *observe.CacheWait:
		l.clusters.mark(l.unsynced, e.Cluster, !e.Ended, e.Controller, e.Kind.GroupKind().String())
	case *observe.ClusterChanged:
		l.clusters.changed(l, e)
	case *observe.StuckFound:
		l.stuck.add(e.Run, l.stuckNow.WithLabelValues(e.Run.Controller, l.of(e.Run).find(e.Path).label))
	case *observe.StaleWait:
		l.failing.waits(e.Run)
		l.converging.waits(e.Run)
		l.reported.observe(e)
	case *observe.Deferred:
		if e.Reason == observe.DeferLease {
			l.failing.waits(e.Run)
			l.converging.waits(e.Run)
		}
		l.reported.observe(e)
	case *observe.ReconcileFinished:
		l.stuck.remove(e.Run)
		l.failing.finished(l, e)
		l.converging.finished(e)
	case *observe.KindServed:
		l.clusters.mark(l.reported.inactive, e.Cluster, !e.Served,
			controllerOf(e.Run, e.Reconciler), e.Step, e.Kind.String())
	case observe.Reported:
		l.reported.observe(e)
	case *observe.HandlerMemory:
		l.clusters.remember(l, e)
	}
	return ctx
}

func (l *listener) stepFinished(e *observe.StepFinished) {
	s := l.of(e.Run).find(e.Path)
	s.finished(e)
	switch e.Outcome {
	case observe.Halted:
		l.converging.halted(e.Run)
	case observe.Panicked:
		l.failing.stepPanicked(e.Run, s)
	}
}

// vectors are the metrics.
type vectors struct {
	causes       *prometheus.CounterVec
	steps        *prometheus.CounterVec
	stepDuration *prometheus.HistogramVec
	writesTotal  *prometheus.CounterVec
	failingNow   *prometheus.GaugeVec
	unconverged  *prometheus.GaugeVec
	convergeTime *prometheus.HistogramVec
	unsynced     *prometheus.GaugeVec
	stuckNow     *prometheus.GaugeVec
	dropped      *prometheus.CounterVec
	clustersNow  *prometheus.GaugeVec
}

func newVectors() vectors {
	return vectors{
		causes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_reconcile_causes_total",
			Help: "Number of reconciles by type of cause. A reconcile with causes of several types counts for each.",
		}, []string{"controller", "cause"}),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_steps_total",
			Help: "Number of finished steps, by outcome: Succeeded, Halted, Failed or Panicked.",
		}, []string{"controller", "step", "outcome"}),
		stepDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "trueup_step_duration_seconds",
			Help:    "Duration of steps, including the steps below them.",
			Buckets: []float64{.0001, .001, .01, .1, 1, 10, 60},
		}, []string{"controller", "step"}),
		writesTotal: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_writes_total",
			Help: "Number of write requests, by result: changed, unchanged, conflict, failed or dry-run. " +
				"The verb is that of RBAC, or apply.",
		}, []string{"controller", "kind", "subresource", "verb", "result"}),
		failingNow: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trueup_failing_objects",
			Help: "Number of objects whose last reconcile failed or had a write refused, by failed step. " +
				"An object for which several steps failed counts for each.",
		}, []string{"controller", "step"}),
		unconverged: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trueup_converging_objects",
			Help: "Number of objects that were created or whose spec changed, and that have not converged yet.",
		}, []string{"controller", "kind"}),
		convergeTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trueup_converge_duration_seconds",
			Help: "Time from the creation of an object, or the latest change of its spec, until it is Ready. " +
				"For kinds without the condition Ready, until a reconcile succeeds without a requeue.",
			Buckets: []float64{.1, .5, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600},
		}, []string{"controller", "kind"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trueup_dropped_fields_total",
			Help: "Number of fields in writes that the API server has not stored, " +
				"because the schema of the kind does not have them.",
		}, []string{"controller", "kind"}),
		stuckNow: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trueup_stuck_objects",
			Help: "Number of objects whose reconcile has been running for more than a minute, by the step that has not ended.",
		}, []string{"controller", "step"}),
		unsynced: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trueup_unsynced_caches",
			Help: "1 for each kind whose cache has not been filled for some seconds, " +
				"or the number of clusters for a controller of several. " +
				"The controller does not start before.",
		}, []string{"controller", "kind"}),
		clustersNow: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trueup_clusters",
			Help: "Number of clusters of a program that reconciles the objects of several, " +
				"by state: Starting, Ready or Paused.",
		}, []string{"state"}),
	}
}

func (v *vectors) all() []prometheus.Collector {
	return []prometheus.Collector{
		v.causes, v.steps, v.stepDuration, v.writesTotal, v.failingNow, v.unconverged, v.convergeTime, v.unsynced,
		v.stuckNow, v.dropped, v.clustersNow,
	}
}
