// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"trueup.dev/observe"
)

// clusters has what is counted by cluster. Metrics have no label for the cluster: a program may have many, and they
// come and go.
type clusters struct {
	mu sync.Mutex
	// marked has the clusters to which a gauge with some labels applies. The gauge is their number.
	marked map[gauge]map[string]bool
	// remembered is the number of resources that a handler remembers.
	remembered map[handler]int
}

type gauge struct {
	of     *prometheus.GaugeVec
	labels [3]string // of which the vector has n
	n      int
}

type handler struct{ cluster, name string }

// mark sets whether a gauge applies to a cluster. A gauge that applies to none does not exist.
func (c *clusters) mark(of *prometheus.GaugeVec, cluster string, applies bool, labels ...string) {
	key := gauge{of: of}
	key.n = copy(key.labels[:], labels)
	c.mu.Lock()
	defer c.mu.Unlock()
	if applies {
		if c.marked == nil {
			c.marked = map[gauge]map[string]bool{}
		}
		if c.marked[key] == nil {
			c.marked[key] = map[string]bool{}
		}
		c.marked[key][cluster] = true
	} else if delete(c.marked[key], cluster); len(c.marked[key]) == 0 {
		delete(c.marked, key)
		of.DeleteLabelValues(labels...)
		return
	}
	of.WithLabelValues(labels...).Set(float64(len(c.marked[key])))
}

// remember counts the resources that a handler remembers.
func (c *clusters) remember(l *listener, e *observe.HandlerMemory) {
	l.reported.remembered.WithLabelValues(e.Handler).Add(float64(e.Change))
	if e.Cluster == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.remembered == nil {
		c.remembered = map[handler]int{}
	}
	c.remembered[handler{e.Cluster, e.Handler}] += e.Change
}

// changed counts the clusters by state, and drops what is counted for a cluster that is gone.
func (c *clusters) changed(l *listener, e *observe.ClusterChanged) {
	if e.Before != "" {
		l.clustersNow.WithLabelValues(string(e.Before)).Dec()
	}
	if e.State != observe.ClusterGone {
		l.clustersNow.WithLabelValues(string(e.State)).Inc()
		return
	}
	c.forget(l, e.Cluster)
	l.failing.forget(e.Cluster)
	l.converging.forget(e.Cluster)
}

func (c *clusters) forget(l *listener, cluster string) {
	c.mu.Lock()
	marked := slices.Collect(maps.Keys(c.marked))
	for of, number := range c.remembered {
		if of.cluster == cluster {
			l.reported.remembered.WithLabelValues(of.name).Sub(float64(number))
			delete(c.remembered, of)
		}
	}
	c.mu.Unlock()
	for _, key := range marked {
		c.mark(key.of, cluster, false, key.labels[:key.n]...)
	}
}

// forget drops the objects of a cluster.
func (f *failing) forget(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, known := range f.objects {
		if key.cluster == cluster {
			for _, s := range known.steps {
				s.failing.Dec()
			}
			delete(f.objects, key)
		}
	}
	f.length.Store(int64(len(f.objects)))
}

// forget drops the objects of a cluster.
func (c *converging) forget(cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.objects {
		if key.cluster == cluster {
			c.remove(key)
		}
	}
}
