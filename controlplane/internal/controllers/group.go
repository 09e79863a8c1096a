// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"
	"k8s.io/kube-controller-manager/config/v1alpha1"
	"k8s.io/kubernetes/pkg/controller/apis/config"
	configscheme "k8s.io/kubernetes/pkg/controller/apis/config/scheme"
)

const (
	// syncTimeout limits the wait for the caches of the controllers. With data from an earlier run, a kind may be
	// impossible to list, for example because its conversion webhook no longer exists. That must not prevent the start of
	// the other controllers.
	syncTimeout = 10 * time.Second

	syncPollPeriod = 10 * time.Millisecond
)

// Files are the keys and certificates that controllers use.
type Files struct {
	// CACertificate and CAKey are the cluster's authority, which signs approved CertificateSigningRequests.
	CACertificate, CAKey string

	// ServiceAccountKey signs the tokens in secrets.
	ServiceAccountKey string
}

// environment is what the controllers share.
type environment struct {
	base      *rest.Config
	version   string
	files     Files
	stored    Stored
	settings  config.KubeControllerManagerConfiguration
	informers informers.SharedInformerFactory
	kinds     *kindInformers
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	started   chan struct{} // closed when the informers have been started
	gc        *collector    // nil if the garbage collector is not enabled
}

// Group runs controllers with one informer cache.
type Group struct {
	*environment
	controllers map[string]runFunc
}

// New builds the named controllers. They connect with base and name themselves kube-controller-manager of the given
// Kubernetes version, so managed fields show that name. Controllers whose feature gates are disabled are omitted.
func New(
	ctx context.Context, base *rest.Config, version string, enabled []string, files Files, stored Stored,
) (*Group, error) {
	settings, err := defaultSettings()
	if err != nil {
		return nil, err
	}
	e := &environment{
		base: base, version: version, files: files, stored: stored, settings: settings, started: make(chan struct{}),
	}
	typedClient, err := kubernetes.NewForConfig(e.config("shared-informers"))
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(e.config("metadata-informers"))
	if err != nil {
		return nil, err
	}
	e.informers = informers.NewSharedInformerFactoryWithOptions(typedClient, settings.Generic.MinResyncPeriod.Duration,
		informers.WithTransform(dropManagedFields))
	e.kinds = newKindInformers(e.informers, metadataClient)
	e.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(typedClient.Discovery()))

	g := &Group{environment: e, controllers: map[string]runFunc{}}
	for _, d := range catalog() {
		if !slices.Contains(enabled, d.name) {
			continue
		}
		if err := g.build(ctx, d); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return g, nil
}

// defaultSettings returns the defaults of kube-controller-manager.
func defaultSettings() (settings config.KubeControllerManagerConfiguration, err error) {
	versioned := v1alpha1.KubeControllerManagerConfiguration{}
	configscheme.Scheme.Default(&versioned)
	err = configscheme.Scheme.Convert(&versioned, &settings, nil)
	return settings, err
}

func (g *Group) build(ctx context.Context, d descriptor) error {
	if !d.enabled() {
		klog.InfoS("Controller is disabled by a feature gate", "controller", d.name)
		return nil
	}
	s := setup{environment: g.environment, name: d.name, config: g.config(d.client)}
	var err error
	if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
		return err
	}
	run, err := d.build(klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), d.name)), s)
	if err != nil {
		return err
	}
	if run != nil {
		g.controllers[d.name] = run
	}
	return nil
}

// config returns a client configuration. The part of the user agent before the first slash is the manager of the fields
// that the client writes.
func (e *environment) config(name string) *rest.Config {
	c := rest.CopyConfig(e.base)
	c.UserAgent = fmt.Sprintf(
		"kube-controller-manager/%s (%s/%s) kubernetes/%s", e.version, runtime.GOOS, runtime.GOARCH, name,
	)
	return c
}

// Run starts the controllers and returns when ctx is done and all have ended.
func (g *Group) Run(ctx context.Context) {
	g.informers.Start(ctx.Done())
	g.kinds.Start(ctx.Done())
	close(g.started)
	var running sync.WaitGroup
	for name, run := range g.controllers {
		running.Go(func() {
			run(klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), name)))
		})
	}
	running.Wait()
	<-ctx.Done()
	g.informers.Shutdown()
}

// WaitUntilSynced returns when the caches of the controllers have synced, or after 10 seconds.
func (g *Group) WaitUntilSynced(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	g.informers.WaitForCacheSync(bounded.Done())
	if g.gc != nil {
		_ = wait.PollUntilContextCancel(bounded, syncPollPeriod, true, func(context.Context) (bool, error) {
			return g.gc.synced(), nil
		})
	}
	return context.Cause(ctx)
}

// withWorkers adapts the usual method Run of Kubernetes' controllers.
func withWorkers(run func(context.Context, int), workers int32) runFunc {
	return func(ctx context.Context) { run(ctx, int(workers)) }
}

// concurrently runs all of them and waits until all have ended.
func concurrently(runs ...runFunc) runFunc {
	return func(ctx context.Context) {
		var group sync.WaitGroup
		for _, run := range runs {
			group.Go(func() { run(ctx) })
		}
		group.Wait()
	}
}

// dropManagedFields saves memory. No controller reads managed fields.
func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
