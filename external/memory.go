// SPDX-License-Identifier: Apache-2.0

package external

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory has what a process knows about the external resources beyond the status. A process that starts without it
// waits longer, and announces less.
type memory struct {
	mu    sync.Mutex
	byUID map[types.UID]remembered
}

// remembered is what is known about the external resource of one Kubernetes resource.
type remembered struct {
	// created is an ID that Create has returned, and that was not observed since. The attempt is the one of its token.
	created string
	attempt int
	// deleted is an ID for which Delete was called.
	deleted string
	// absent is an ID or token that was not found since a time.
	absent string
	since  time.Time
}

// of returns what is remembered about a resource.
func (m *memory) of(resource client.Object) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byUID[resource.GetUID()]
}

// change changes what is remembered about a resource. The function must not call the memory.
func (m *memory) change(resource client.Object, change func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.byUID[resource.GetUID()]
	if change(&known); known.created == "" && known.deleted == "" && known.absent == "" {
		delete(m.byUID, resource.GetUID())
		return
	}
	if m.byUID == nil {
		m.byUID = map[types.UID]remembered{}
	}
	m.byUID[resource.GetUID()] = known
}

func (m *memory) forget(resource client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byUID, resource.GetUID())
}
