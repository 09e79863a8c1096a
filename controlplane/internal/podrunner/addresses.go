// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// firstAddress is the first of the pods' addresses, which is also used after the last one. The range is reserved for
// benchmarks of network devices (RFC 2544), so that no host of the network has one of the addresses.
var (
	firstAddress = netip.MustParseAddr("198.19.0.1")
	podRange     = netip.MustParsePrefix("198.19.0.0/16")
)

// IsPodAddress reports whether an address is from the range of the pods' addresses.
func IsPodAddress(address netip.Addr) bool { return podRange.Contains(address) }

// addresses assigns a unique address to each pod. It is safe for concurrent use.
type addresses struct {
	mu    sync.Mutex
	next  netip.Addr
	byPod map[types.UID]string
	taken map[string]types.UID
}

func newAddresses() *addresses {
	return &addresses{next: firstAddress, byPod: map[types.UID]string{}, taken: map[string]types.UID{}}
}

// note records the address that a pod has from an earlier run.
func (a *addresses) note(pod types.UID, address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byPod[pod] = address
	a.taken[address] = pod
}

// of returns the pod's address, the same each time. It returns "" if all addresses are in use.
func (a *addresses) of(pod types.UID) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if address, ok := a.byPod[pod]; ok {
		return address
	}
	for range 1 << (32 - podRange.Bits()) {
		address := a.next.String()
		a.next = a.next.Next()
		if !podRange.Contains(a.next) {
			a.next = firstAddress
		}
		if _, ok := a.taken[address]; !ok {
			a.byPod[pod] = address
			a.taken[address] = pod
			return address
		}
	}
	return ""
}

func (a *addresses) release(pod types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.taken, a.byPod[pod])
	delete(a.byPod, pod)
}
