// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
)

var _ subReconciler = (*WithConfig[client.Object])(nil)

// WithConfig runs nested reconcilers with another config, for example with other permissions or for another cluster.
// The original config still writes the resource, its finalizers and its events, see [RetrieveOriginalConfig].
//
// Children are watched in the cluster of the config. Add the cluster to the manager:
//
//	err := mgr.Add(remote)               // a cluster.Cluster, so that it starts with the manager
//	there := config.WithCluster(remote)
//
// To watch other objects in that cluster, use WatchesRawSource and a source.Kind with the cache of the cluster: the
// watches of the builder are in the cluster of the manager.
type WithConfig[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `WithConfig`.
	Name string

	// Config returns the config to use. Its argument is the current config. It is called once during setup and once per
	// request, so it should return an existing config: call [Config.WithCluster] in advance. Required.
	Config func(ctx context.Context, config Config) (Config, error)

	// Reconciler runs with the returned config. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
}

func (r *WithConfig[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "WithConfig"
		}
	})
}

// SetupWithManager validates the reconciler and sets up Reconciler with the config.
func (r *WithConfig[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *WithConfig[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *WithConfig[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *WithConfig[T]) describe(d *description) {
	r.init()
	d.is("WithConfig", r.Name)
	d.require(r.Config != nil, "must define Config")
	d.require(given(r.Reconciler), "must define Reconciler")
	d.nests(nested{
		role: "Reconciler", reconciler: r.Reconciler, ownConfig: true, setUpIn: r.withConfig,
		inside: func(ctx context.Context) context.Context { return belowConfig(ctx, r) },
	})
}

// Reconcile runs Reconciler with the config.
func (r *WithConfig[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, func(ctx context.Context, resource T) (Result, error) {
		ctx, err := r.withConfig(ctx)
		if err != nil {
			return Result{}, err
		}
		return r.Reconciler.Reconcile(ctx, resource)
	})
}

func (r *WithConfig[T]) withConfig(ctx context.Context) (context.Context, error) {
	current, err := RetrieveConfig(ctx)
	if err != nil {
		return nil, err
	}
	config, err := r.Config(ctx, current)
	if err != nil {
		return nil, err
	}
	s := scopeFrom(ctx)
	s.config, s.inventory = &config, nil
	return s.onto(ctx), nil
}
