// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"trueup.dev/internal/filelock"
)

// timeout limits the preparation of a cluster for a case, and the clean-up after it.
const timeout = 30 * time.Second

// hosts are the clusters that this process uses, by address.
var hosts sync.Map

// host is a cluster that cases use one after another, also the cases of other processes on this machine: packages are
// tested at the same time, and use the same names of namespaces.
type host struct {
	address string
	// turn is held by the running case of this process.
	turn sync.Mutex
	// unlock ends the turn of this process. The holder of turn may access it.
	unlock func()
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
func TakeTurn(ctx context.Context, clusters map[string]*Cluster) (*Turn, error) {
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
	for i, host := range turn.hosts {
		if err := host.lock(ctx); err != nil {
			turn.hosts = turn.hosts[:i]
			turn.End()
			return nil, fmt.Errorf("OnCluster: %w", err)
		}
	}
	return turn, nil
}

func (h *host) lock(ctx context.Context) error {
	h.turn.Lock()
	address := sha256.Sum256([]byte(h.address))
	path := filepath.Join(os.TempDir(), fmt.Sprintf("trueup-cases-%d-%x.lock", os.Getuid(), address[:8]))
	var err error
	if h.unlock, err = filelock.Lock(ctx, path, func(string) {}); err != nil {
		h.turn.Unlock()
	}
	return err
}

// End lets the next case start.
func (t *Turn) End() {
	for _, host := range t.hosts {
		host.unlock()
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
