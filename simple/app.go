// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/app"
	"trueup.dev/informer"
	"trueup.dev/internal/engine/lifecycle"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

var (
	_ app.App          = (*App)(nil)
	_ app.CustomRouter = (*App)(nil)
	_ app.Runnable     = (*App)(nil)
)

// App is an [app.App] that is defined by a config. It is a controller-runtime manager with a controller for each kind
// that has a handler, and webhooks for Mutators, Validators and Converters. See [NewApp].
type App struct {
	config AppConfig
	mgr    manager.Manager
	log    logr.Logger
	// base is the config for everything that is not specific to a kind.
	base reconcilers.Config
	// configs are the configs of kinds whose informer has all objects.
	configs map[schema.GroupVersionKind]reconcilers.Config
	// informers are keyed by the names of their controllers.
	informers map[string]informer.Informer
	webhooks  *webhookServer
	routes    routes
	// controllers and handlers are what the app consists of, see Graph.
	controllers []any
	handlers    map[string]http.Handler
	// serving is the app that answers the API server, see ServeWebhooksOf.
	serving atomic.Pointer[app.App]
}

// NewApp makes an app. It makes no request and opens no port, and an app needs no name that is unique in the process: a
// unit test may make several apps, to read their ManagedKinds or WebhookConfigurations. Run listens. The error lists
// all problems of the config, with their fields.
//
// Each kind with a handler has a controller, named `<plural>.<group>`, and an informer. All informers are synced
// before the first call of a handler. /readyz has a check for each informer, and one for the webhooks. An app with
// Converters is ready before its informers are synced: to sync them, the API server may have to request conversions,
// and a Service does not route these requests to a pod that is not ready. Panics of handlers are recovered and count
// as failures. The app serves the metrics of controller-runtime and of this module.
//
// RBAC, with the group and the plural of each kind with a handler, and the permissions that handlers need:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;patch
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>/status,verbs=get;update;patch
//	// +kubebuilder:rbac:groups=core,resources=events,verbs=create;patch
//	// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update
//
// An app with custom routes also needs:
//
//	// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
//	// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
func NewApp(config AppConfig) (*App, error) {
	config.Name = config.nameOrGroup()
	kinds, err := config.validate()
	if err != nil {
		return nil, fmt.Errorf("invalid config of app %q:\n%w", config.Name, err)
	}
	a := &App{
		config: config, configs: map[schema.GroupVersionKind]reconcilers.Config{}, informers: map[string]informer.Informer{},
		routes: config.routes(),
	}
	if a.config.Clients == nil {
		a.config.Clients = &Clients{}
	}
	if err := a.makeManager(kinds); err != nil {
		return nil, fmt.Errorf("app %q: %w", config.Name, err)
	}
	if err := a.makeControllers(kinds); err != nil {
		return nil, fmt.Errorf("app %q: %w", config.Name, err)
	}
	a.checkWhenServed()
	if err := a.serveWebhooks(); err != nil {
		return nil, fmt.Errorf("app %q: %w", config.Name, err)
	}
	if err := a.config.Clients.use(a); err != nil {
		return nil, fmt.Errorf("app %q: %w", config.Name, err)
	}
	return a, nil
}

// Run runs the app until ctx ends, and then returns nil. It returns an error if the app cannot continue, for example
// because it has lost its lease. When Run returns, all calls of handlers have ended, unless they take longer than
// GracefulShutdownTimeout, which is an error. If ctx ends before all informers are synced, Run returns an error that
// names those informers. An app runs only once, and the process should end after it.
//
// Run first compares the kinds with the API server. It returns an error with the field of each kind that is not
// served, unless WhileServed is set in its ReconcileOptions, or that has another plural or scope. While the API server
// is unreachable, Run retries; the reason is logged once.
func (a *App) Run(ctx context.Context) error {
	if a.config.KubeConfig.Host == "" {
		return fmt.Errorf("app %q: KubeConfig.Host is required", a.config.Name)
	}
	if len(a.config.VersionedCustomRoutes) > 0 && len(a.config.ManagedKinds) == 0 && !a.webhooks.elsewhere.Load() {
		return fmt.Errorf(
			"app %q: the group of VersionedCustomRoutes is unknown: the app must have ManagedKinds in the group, or an "+
				"operator.Runner with a manifest must serve it", a.config.Name,
		)
	}
	if err := a.waitUntilServed(ctx); err != nil {
		return fmt.Errorf("app %q: %w", a.config.Name, err)
	}
	return lifecycle.Run(ctx, a.mgr, a.unsynced)
}

// unsynced returns the names of informers that do not have all objects yet.
func (a *App) unsynced() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(a.informers)), func(name string) bool {
		return lifecycle.IsSynced(a.informers[name])
	})
}

// Runner returns the app itself, which has a method Run.
func (a *App) Runner() app.Runnable { return a }

// AddRunnable adds a runnable that runs with the app, in the replica that calls handlers. The app stops if the
// runnable returns an error. AddRunnable must not be called after Run.
func (a *App) AddRunnable(runnable app.Runnable) error {
	if nilcheck.IsNil(runnable) {
		return errors.New("the runnable must not be nil")
	}
	return a.mgr.Add(manager.RunnableFunc(runnable.Run))
}

// Manager returns the manager of the app. Use it to add components before the app runs.
func (a *App) Manager() manager.Manager { return a.mgr }

// ClientGenerator returns the clients of the app: the Clients of its config if they are set.
func (a *App) ClientGenerator() resource.LiveReaderGenerator { return a.config.Clients }

// ManagedKinds returns the managed kinds of the app, in the order of its config.
func (a *App) ManagedKinds() []resource.Kind {
	kinds := make([]resource.Kind, len(a.config.ManagedKinds))
	for i := range kinds {
		kinds[i] = a.config.ManagedKinds[i].Kind
	}
	return kinds
}

// HealthChecks returns a check for each informer that the app waits for. The app's own /readyz includes them.
func (a *App) HealthChecks() []app.HealthCheck {
	if len(a.config.Converters) > 0 {
		return nil // see NewApp
	}
	var checks []app.HealthCheck
	for _, name := range slices.Sorted(maps.Keys(a.informers)) {
		checks = append(checks, informerCheck{name, a.informers[name]})
	}
	return checks
}

type informerCheck struct {
	name     string
	informer informer.Informer
}

func (c informerCheck) HealthCheckName() string { return "informer-" + c.name }

func (c informerCheck) HealthCheck(ctx context.Context) error {
	return lifecycle.CheckSynced(ctx, c.informer)
}

// ValidateManifest returns an error that lists everything that the manifest declares but the app does not do.
func (a *App) ValidateManifest(manifest app.ManifestData) error {
	p := problems{}
	for _, version := range manifest.Versions {
		a.routes.validateVersion(&p, version)
		for _, kind := range version.Kinds {
			gvk := schema.GroupVersionKind{Group: manifest.Group, Version: version.Name, Kind: kind.Kind}
			managed, ok := a.managed(gvk)
			if !ok {
				p.add("%s is not among ManagedKinds", gvk)
				continue
			}
			if kind.SupportsMutation() && managed.Mutator == nil {
				p.add("%s has no Mutator", gvk)
			}
			if kind.SupportsValidation() && managed.Validator == nil {
				p.add("%s has no Validator", gvk)
			}
			if kind.Conversion && a.config.Converters[gvk.GroupKind()] == nil {
				p.add("%s has no Converter", gvk)
			}
			a.routes.validateKind(&p, gvk, kind.Routes)
		}
	}
	return errors.Join(p...)
}

func (a *App) managed(gvk schema.GroupVersionKind) (AppManagedKind, bool) {
	i := slices.IndexFunc(a.config.ManagedKinds, func(k AppManagedKind) bool { return k.Kind.GroupVersionKind() == gvk })
	if i < 0 {
		return AppManagedKind{}, false
	}
	return a.config.ManagedKinds[i], true
}

// kindsWith returns the managed kinds for which has returns true, grouped by kind: each group has all versions.
func (a *App) kindsWith(has func(AppManagedKind) bool) [][]resource.Kind {
	var groups [][]resource.Kind
	for _, k := range a.config.ManagedKinds {
		if !has(k) {
			continue
		}
		i := slices.IndexFunc(groups, func(versions []resource.Kind) bool {
			return versions[0].GroupKind() == k.Kind.GroupKind()
		})
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], k.Kind)
	}
	return groups
}

func hasMutator(k AppManagedKind) bool { return k.Mutator != nil }

func hasValidator(k AppManagedKind) bool { return k.Validator != nil }

// configFor returns the config to access objects of a kind. It uses an informer only if the informer has all objects.
func (a *App) configFor(kind resource.Kind) reconcilers.Config {
	if config, ok := a.configs[kind.GroupVersionKind()]; ok {
		return config
	}
	return a.base
}
