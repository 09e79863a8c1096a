// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/wiring"
)

// recordReconciler records the wiring of the reconciler that a factory returns. The context of the set-up has the
// additional configs, each for a cluster with the name of the config.
func recordReconciler(
	ctx context.Context, scheme *runtime.Scheme, factory func(
		config reconcilers.Config,
	) any, additional map[string]ExpectConfig, given []client.Object,
) (*Wiring, error) {
	return recordWiring(ctx, scheme, func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
		ctx, err := stashOtherClusters(ctx, mgr, config, additional)
		if err != nil {
			return err
		}
		config.Client = wiringClient{config.Client}
		return wiring.SetUp(ctx, mgr, factory(config))
	}, given...)
}

// wiringClient is a [TestClient] for factories that need one. It ignores reactors, as a set-up makes no calls to react
// to.
type wiringClient struct{ client.Client }

var _ TestClient = wiringClient{}

func (wiringClient) AddGiven(...client.Object)                   {}
func (wiringClient) AddReactor(string, string, ReactionFunc)     {}
func (wiringClient) PrependReactor(string, string, ReactionFunc) {}

// recordSubReconciler records the wiring of the sub reconciler that a factory returns, below a root reconciler for
// resources like the given one, and omits what the root asks for.
func recordSubReconciler[T client.Object](
	ctx context.Context, scheme *runtime.Scheme, resource T, factory func(
		config reconcilers.Config,
	) reconcilers.SubReconciler[T],
	additional map[string]ExpectConfig, given []client.Object,
) (*Wiring, error) {
	if unwrapped, ok := resource.DeepCopyObject().(T); ok {
		resource = unwrapped
	}
	root := schema.GroupVersionKind{}
	recorded, err := recordReconciler(ctx, scheme, func(config reconcilers.Config) any {
		// The set-up reports an unknown kind.
		root, _ = config.GroupVersionKindFor(resource)
		return &reconcilers.ResourceReconciler[T]{Type: resource, Reconciler: factory(config), Config: config}
	}, additional, given)
	if err != nil {
		return nil, err
	}
	var others []Watch
	for _, watch := range recorded.For {
		if kind, err := apiutil.GVKForObject(watch.Object, scheme); err != nil || kind != root {
			others = append(others, watch)
		}
	}
	recorded.For = others
	return recorded, nil
}

// stashOtherClusters returns a context with a config for each additional config of a case. They share the tracker, as
// all tracked objects trigger the same resources.
func stashOtherClusters(
	ctx context.Context, mgr ctrl.Manager, config reconcilers.Config, additional map[string]ExpectConfig,
) (context.Context, error) {
	configs := map[string]reconcilers.Config{}
	for _, name := range slices.Sorted(maps.Keys(additional)) {
		other, err := wiring.OtherCluster(mgr, name)
		if err != nil {
			return nil, err
		}
		configs[name] = config.WithCluster(other)
	}
	return reconcilers.StashAdditionalConfigs(ctx, configs), nil
}
