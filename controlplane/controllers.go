// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/controller-manager/pkg/clientbuilder"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kcmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// controllerSyncTimeout limits the wait for the caches of the controllers. With data from an earlier run, a kind may be
// impossible to list, for example because its conversion webhook no longer exists. That must not prevent the start of
// the other controllers.
const controllerSyncTimeout = 10 * time.Second

// controllerGroup runs controllers of kube-controller-manager without its command: with one informer cache, no leader
// election and no port.
type controllerGroup struct {
	context     kcm.ControllerContext
	controllers []kcm.Controller
	gc          *collector
}

// newControllers builds the named controllers. Three of them are assembled here from parts of Kubernetes, see
// newCollector, newNamespaceController and newTokenController.
func newControllers(ctx context.Context, config *rest.Config, enabled []string, keys *pki) (*controllerGroup, error) {
	builder := clientbuilder.SimpleControllerClientBuilder{ClientConfig: config}
	typedClient, err := builder.Client("shared-informers")
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(rest.AddUserAgent(config, "metadata-informers"))
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	discoveryClient, err := builder.DiscoveryClient("controller-discovery")
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	settings, err := kcmoptions.NewDefaultComponentConfig()
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	settings.Generic.Controllers = enabled
	settings.SAController.ServiceAccountKeyFile = keys.serviceAccountKey
	settings.SAController.RootCAFile = keys.ca.file

	typed := informers.NewSharedInformerFactoryWithOptions(typedClient, settings.Generic.MinResyncPeriod.Duration,
		informers.WithTransform(dropManagedFields))
	dynamic := newKindInformers(typed, metadataClient)
	group := &controllerGroup{context: kcm.ControllerContext{
		ClientBuilder:                   builder,
		InformerFactory:                 typed,
		ObjectOrMetadataInformerFactory: dynamic,
		ComponentConfig:                 settings,
		RESTMapper:                      restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoveryClient)),
		InformersStarted:                make(chan struct{}),
		ResyncPeriod:                    func() time.Duration { return settings.Generic.MinResyncPeriod.Duration },
		ControllerManagerMetrics:        controllersmetrics.NewControllerManagerMetrics("kube-controller-manager"),
	}}

	if err := group.build(ctx, enabled, metadataClient, dynamic); err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	return group, nil
}

// build creates the enabled controllers.
func (g *controllerGroup) build(
	ctx context.Context, enabled []string, metadataClient metadata.Interface, dynamic *kindInformers,
) (err error) {
	own := map[string]func() (kcm.Controller, error){
		names.ServiceAccountTokenController: func() (kcm.Controller, error) { return newTokenController(ctx, g.context) },
		names.NamespaceController: func() (kcm.Controller, error) {
			return newNamespaceController(ctx, g.context)
		},
		names.GarbageCollectorController: func() (kcm.Controller, error) {
			var err error
			g.gc, err = newCollector(ctx, g.context, metadataClient, dynamic)
			return g.gc, err
		},
	}
	descriptors := kcm.NewControllerDescriptors()
	for name := range own {
		delete(descriptors, name)
	}
	g.controllers, err = kcm.BuildControllers(ctx, g.context, descriptors, nil, noHealthChecks{})
	if err != nil {
		return err
	}
	for name, build := range own {
		if !slices.Contains(enabled, name) {
			continue
		}
		controller, err := build()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		g.controllers = append(g.controllers, controller)
	}
	return nil
}

// run starts the controllers and returns when ctx is done and all have ended.
func (g *controllerGroup) run(ctx context.Context) {
	g.context.InformerFactory.Start(ctx.Done())
	g.context.ObjectOrMetadataInformerFactory.Start(ctx.Done())
	close(g.context.InformersStarted)
	if len(g.controllers) > 0 {
		kcm.RunControllers(ctx, g.context, g.controllers, 0, 0)
	}
	<-ctx.Done()
	g.context.InformerFactory.Shutdown()
}

// waitUntilSynced returns when the caches of the controllers have synced.
func (g *controllerGroup) waitUntilSynced(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, controllerSyncTimeout)
	defer cancel()
	g.context.InformerFactory.WaitForCacheSync(bounded.Done())
	if g.gc != nil {
		poll(bounded, func(context.Context) bool { return g.gc.synced() })
	}
	if ctx.Err() != nil {
		return fmt.Errorf("controllers: %w", context.Cause(ctx))
	}
	return nil
}

// noHealthChecks ignores the controllers' health checks, because no port serves them.
type noHealthChecks struct{}

func (noHealthChecks) AddHealthChecker(...healthz.HealthChecker) {}

// dropManagedFields saves memory. No controller reads managed fields.
func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
