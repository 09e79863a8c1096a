// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// clusterPatience is how long a cluster may take to be made ready for a case, and to be cleaned up after it.
const clusterPatience = 30 * time.Second

// clusterHosts has what is shared by all runs of this process that are on one cluster, by its address.
var clusterHosts sync.Map

// clusterHost is a cluster that cases of this process take turns on.
type clusterHost struct {
	address string
	// turn is held by the case that runs.
	turn sync.Mutex
	// namespaces are those that cases have made. They belong to whose turn it is.
	namespaces map[string]bool
}

func hostOf(address string) *clusterHost {
	host, _ := clusterHosts.LoadOrStore(address, &clusterHost{address: address, namespaces: map[string]bool{}})
	return host.(*clusterHost)
}

// clusterTurn is the time in which a case has its clusters for itself.
type clusterTurn struct {
	clusters map[string]*cluster
	hosts    []*clusterHost
}

// takeTurn waits until no other case is on any of the clusters.
func takeTurn(clusters map[string]*cluster) (*clusterTurn, error) {
	if clusters[defaultConfigName] == nil {
		return nil, errors.New("OnAdditionalCluster: needs OnCluster beside it")
	}
	turn := &clusterTurn{clusters: clusters}
	for _, on := range clusters {
		if err := on.connect(); err != nil {
			return nil, err
		}
		if !slices.Contains(turn.hosts, on.host) {
			turn.hosts = append(turn.hosts, on.host)
		}
	}
	// In the same order in all cases, or two would wait for each other.
	slices.SortFunc(turn.hosts, func(a, b *clusterHost) int { return cmp.Compare(a.address, b.address) })
	for _, host := range turn.hosts {
		host.turn.Lock()
	}
	return turn, nil
}

// end lets the next case begin.
func (t *clusterTurn) end() {
	for _, host := range t.hosts {
		host.turn.Unlock()
	}
}

// open makes the API of a config.
func (t *clusterTurn) open(c *ExpectConfig) (*api, error) {
	on := t.clusters[c.Name]
	if on == nil {
		return nil, notOnClusterf(
			"AdditionalConfigs[%q]: is for another cluster, which OnAdditionalCluster(%[1]q, …) has to name", c.Name,
		)
	}
	ctx, cancel := context.WithTimeout(context.Background(), clusterPatience)
	defer cancel()
	return newClusterAPI(ctx, on, c)
}
