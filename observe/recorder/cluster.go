// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"trueup.dev/observe"
)

// Cluster is a cluster of a program that reconciles the objects of several, see package clusters.
type Cluster struct {
	Name  string               `json:"name"`
	State observe.ClusterState `json:"state"`
	// Since is when the cluster got the state.
	Since time.Time `json:"since"`
	// Objects, Trouble and NotReady are the sums of these fields of its controllers, and 0 for a cluster that is gone.
	Objects  int `json:"objects"`
	Trouble  int `json:"trouble"`
	NotReady int `json:"notReady"`
	// CacheWaits are the caches that its controllers wait for.
	CacheWaits []CacheWait `json:"cacheWaits,omitempty"`
}

// maxGone limits the clusters that are gone, and are still named. The first that went is dropped.
const maxGone = 100

// clusterChanged notes the state of a cluster, and drops the objects of a cluster that is gone.
func (r *Recorder) clusterChanged(e *observe.ClusterChanged) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.State == observe.ClusterGone {
		r.forgetCluster(e.Cluster)
	}
	r.clusters = slices.DeleteFunc(r.clusters, func(c Cluster) bool { return c.Name == e.Cluster })
	r.clusters = append(r.clusters, Cluster{Name: e.Cluster, State: e.State, Since: time.Now()})
	gone := 0
	for i := len(r.clusters) - 1; i >= 0; i-- { // the last change is the last element
		if r.clusters[i].State == observe.ClusterGone {
			gone++
		}
		if gone > maxGone {
			r.clusters = slices.Delete(r.clusters, i, i+1)
			break
		}
	}
	r.version.Add(1)
}

// Clusters returns the clusters, those that are not ready first, then sorted by name. It also returns those that are
// gone, at most 100 of them. It returns none if the program reconciles the objects of one cluster.
func (r *Recorder) Clusters() []Cluster {
	r.mu.Lock()
	all := slices.Clone(r.clusters)
	r.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(clusterRank(a), clusterRank(b)), strings.Compare(a.Name, b.Name))
	})
	index := make(map[string]*Cluster, len(all))
	for i := range all {
		index[all[i].Name] = &all[i]
	}
	for _, c := range r.Controllers() {
		if of := index[clusterOf(c.Name)]; of != nil {
			of.Objects += c.Objects
			of.Trouble += c.Trouble
			of.NotReady += c.NotReady
			of.CacheWaits = append(of.CacheWaits, c.CacheWaits...)
		}
	}
	return all
}

// clusterRank orders clusters by state.
func clusterRank(c Cluster) int {
	return slices.Index([]observe.ClusterState{
		observe.ClusterPaused, observe.ClusterStarting, observe.ClusterGone, observe.ClusterReady,
	}, c.State)
}
