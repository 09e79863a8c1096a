// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// timeout limits the preparation of a cluster for a case, and the clean-up after it.
const timeout = 30 * time.Second

// hosts are the clusters that this process uses, by address.
var hosts sync.Map

// host is a cluster that the cases of this process use one after another.
type host struct {
	address string
	// turn is held by the running case.
	turn sync.Mutex
	// namespaces are those that cases have created. The holder of turn may access them.
	namespaces map[string]bool
}

func hostOf(address string) *host {
	known, _ := hosts.LoadOrStore(address, &host{address: address, namespaces: map[string]bool{}})
	return known.(*host)
}

// Turn gives a case exclusive use of its clusters.
type Turn struct {
	clusters map[string]*Cluster
	hosts    []*host
}

// TakeTurn waits until no other case uses any of the clusters.
func TakeTurn(clusters map[string]*Cluster) (*Turn, error) {
	if clusters[DefaultName] == nil {
		return nil, errors.New("OnAdditionalCluster: requires the option OnCluster")
	}
	turn := &Turn{clusters: clusters}
	for _, on := range clusters {
		if err := on.connect(); err != nil {
			return nil, err
		}
		if !slices.Contains(turn.hosts, on.host) {
			turn.hosts = append(turn.hosts, on.host)
		}
	}
	// all cases lock in the same order, to avoid a deadlock
	slices.SortFunc(turn.hosts, func(a, b *host) int { return cmp.Compare(a.address, b.address) })
	for _, host := range turn.hosts {
		host.turn.Lock()
	}
	return turn, nil
}

// End lets the next case start.
func (t *Turn) End() {
	for _, host := range t.hosts {
		host.turn.Unlock()
	}
}

// Open creates the given objects of a config in its cluster, and returns the API for it. The error is a [SkipError] if
// the case cannot run on a cluster.
func (t *Turn) Open(c Case) (*API, error) {
	on := t.clusters[c.Name]
	if on == nil {
		return nil, skipf(
			"AdditionalConfigs[%q]: requires the option OnAdditionalCluster(%[1]q, …)", c.Name,
		)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return newAPI(ctx, on, c)
}
