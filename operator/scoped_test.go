// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// The manager does not wait for an informer that is removed before it has synced.
func TestScopedManager_DoesNotWaitForRemovedInformers(t *testing.T) {
	scope, remove := context.WithCancel(t.Context())
	mgr := &addedTo{}
	if err := (&scopedManager{Manager: mgr, scope: scope}).Add(neverSynced{}); err != nil {
		t.Fatal(err)
	}
	synced := make(chan bool)
	go func() { synced <- mgr.added.(hasCache).GetCache().WaitForCacheSync(t.Context()) }()
	remove()
	if !<-synced {
		t.Error("the manager would wait forever")
	}
}

type addedTo struct {
	ctrl.Manager
	added manager.Runnable
}

func (m *addedTo) Add(runnable manager.Runnable) error {
	m.added = runnable
	return nil
}

// neverSynced is a cache that a manager runs.
type neverSynced struct{ cache.Cache }

func (c neverSynced) GetCache() cache.Cache { return c }

func (neverSynced) WaitForCacheSync(ctx context.Context) bool {
	<-ctx.Done()
	return false
}
