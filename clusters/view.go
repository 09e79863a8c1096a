// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/ctrlfields"
)

// view is the manager that SetUp gets for one cluster. It has the methods of the cluster, and the methods of the
// manager that a cluster does not have. It keeps what is added to it, for the member to start.
type view struct {
	cluster.Cluster
	ofManager
	member *member

	mu          sync.Mutex
	controllers []*built
	others      []manager.Runnable
	checks      map[string]healthz.Checker
	// start starts what is added later. It is nil before the start of the cluster.
	start func(runnable manager.Runnable)
}

// ofManager hides the methods of a manager below the methods of a cluster.
type ofManager struct{ ctrl.Manager }

var _ ctrl.Manager = (*view)(nil)

// built is a controller of one cluster. It is never started: its sources are, and a [shared] controller calls its
// reconciler.
type built struct {
	ctrlfields.Controller
	controller
	shared *shared
}

// controller is what a controller of controller-runtime is.
type controller interface {
	reconcile.Reconciler
	Warmup(ctx context.Context) error
}

// ClusterName returns the name of the cluster, and Unwrap the manager. Package observe uses them.
func (v *view) ClusterName() string  { return v.member.name }
func (v *view) Unwrap() ctrl.Manager { return v.Manager }

// GetLogger returns the logger of the manager with the name of the cluster.
func (v *view) GetLogger() logr.Logger {
	return v.Manager.GetLogger().WithValues("cluster", v.member.name)
}

// GetControllerOptions returns the options of the manager. The controllers of all clusters have the same names.
func (v *view) GetControllerOptions() config.Controller {
	options := v.Manager.GetControllerOptions()
	options.SkipNameValidation = new(true)
	if options.MaxConcurrentReconciles <= 0 {
		options.MaxConcurrentReconciles = v.member.fleet.options.Workers
	}
	return options
}

// GetFieldIndexer returns the field indexer of the cluster. It adds each index once: SetUp may be called again.
func (v *view) GetFieldIndexer() client.FieldIndexer {
	if of, ok := v.Cluster.GetFieldIndexer().(cache.Cache); ok {
		return indexer{of, v.member}
	}
	return v.Cluster.GetFieldIndexer()
}

type indexer struct {
	cache.Cache
	member *member
}

// CacheOf returns the cache. Package reconcilers uses it.
func (i indexer) CacheOf(client.Object) cache.Cache { return i.Cache }

// IndexField implements [client.FieldIndexer].
func (i indexer) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	return i.member.indexOnce(ctx, &index{obj, field, extract})
}

// Start returns an error: the fleet starts what was added.
func (v *view) Start(context.Context) error {
	return errors.New("the manager of one cluster cannot be started: start the manager of the fleet")
}

// AddReadyzCheck adds a check to the readiness of the cluster: one cluster must not make the manager unready.
func (v *view) AddReadyzCheck(name string, check healthz.Checker) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, exists := v.checks[name]; exists {
		return fmt.Errorf("the readiness check %q exists", name)
	}
	if v.checks == nil {
		v.checks = map[string]healthz.Checker{}
	}
	v.checks[name] = check
	return nil
}

// AddHealthzCheck does the same: a manager that does not live is restarted, which does not help a cluster.
func (v *view) AddHealthzCheck(name string, check healthz.Checker) error {
	return v.AddReadyzCheck("healthz/"+name, check)
}

// Add keeps a runnable until the cluster starts. It runs as long as the cluster is engaged.
func (v *view) Add(runnable manager.Runnable) error {
	fields, isController := ctrlfields.ControllerOf(runnable)
	made, canWarm := runnable.(controller)
	if !isController || !canWarm {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.start != nil {
			v.start(runnable)
		} else {
			v.others = append(v.others, runnable)
		}
		return nil
	}
	if !fields.HasDefaultQueue() {
		return fmt.Errorf("controller %q must not define NewQueue in its options: clusters share the queue", fields.Name())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.start != nil {
		return fmt.Errorf("controller %q must be added in SetUp", fields.Name())
	}
	for _, other := range v.controllers {
		if other.Name() == fields.Name() {
			return fmt.Errorf("two controllers of SetUp have the name %q", fields.Name())
		}
	}
	v.controllers = append(v.controllers, &built{Controller: fields, controller: made})
	return nil
}
