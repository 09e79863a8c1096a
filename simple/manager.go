// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/informer"
	"trueup.dev/internal/engine/lifecycle"
	"trueup.dev/internal/serving/loopback"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// namespaceFile contains the namespace of the pod that the process runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func (a *App) makeManager(kinds []*handled) error {
	scheme, err := a.scheme(kinds)
	if err != nil {
		return err
	}
	c := &a.config
	a.webhooks = &webhookServer{Server: webhook.NewServer(c.Webhooks)}
	options := ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 loopback.Metrics(c.MetricsBindAddress),
		HealthProbeBindAddress:  cmp.Or(c.HealthBindAddress, ":8081"),
		WebhookServer:           a.webhooks,
		GracefulShutdownTimeout: new(cmp.Or(c.GracefulShutdownTimeout, 30*time.Second)),
		Cache: cache.Options{
			DefaultTransform:  cache.TransformStripManagedFields(),
			DefaultNamespaces: namespaces(c.InformerConfig.InformerOptions.Namespaces),
		},
		// Names are unique within an app. A process may have several apps.
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
	if c.Shard == nil {
		c.LeaderElection.apply(c.Name, &options)
	}
	c.LeaderElection.applyDurations(&options)
	if c.ManagerOptions != nil {
		c.ManagerOptions(&options)
	}
	if c.Shard != nil {
		if options, err = c.Shard.ManagerOptions(&c.KubeConfig, options); err != nil {
			return err
		}
	}
	if options.LeaderElection && options.LeaderElectionID == "" {
		return errors.New("the field Name or LeaderElection.ID is required, because it is the name of the lease")
	}
	mgr, err := newProbedManager(rest.CopyConfig(&c.KubeConfig), options)
	if err != nil {
		return err
	}
	a.mgr = mgr
	a.log = a.mgr.GetLogger().WithName(c.Name)
	if !options.LeaderElection && !c.LeaderElection.Disabled {
		a.log.Info("leader election is disabled, because the namespace of the lease is unknown")
	}
	return a.mgr.AddHealthzCheck("healthz", healthz.Ping)
}

// scheme returns the scheme with all kinds of the app.
func (a *App) scheme(handled []*handled) (*runtime.Scheme, error) {
	scheme := a.config.Scheme
	if scheme == nil {
		scheme = runtime.NewScheme()
		if err := clientgoscheme.AddToScheme(scheme); err != nil {
			return nil, err
		}
	}
	kinds := append(a.ManagedKinds(), a.config.Clients.known()...)
	for _, h := range handled {
		kinds = append(kinds, h.kind)
	}
	return scheme, resource.AddToScheme(scheme, kinds...)
}

func (l *LeaderElection) apply(app string, options *ctrl.Options) {
	namespace := l.Namespace
	if namespace == "" {
		if inPod, err := os.ReadFile(namespaceFile); err == nil {
			namespace = strings.TrimSpace(string(inPod))
		}
	}
	options.LeaderElection = !l.Disabled && namespace != ""
	options.LeaderElectionNamespace = namespace
	options.LeaderElectionID = cmp.Or(l.ID, app)
	options.LeaderElectionReleaseOnCancel = true
}

func (l *LeaderElection) applyDurations(options *ctrl.Options) {
	options.LeaseDuration = unlessZero(l.LeaseDuration)
	options.RenewDeadline = unlessZero(l.RenewDeadline)
	options.RetryPeriod = unlessZero(l.RetryPeriod)
}

func unlessZero(d time.Duration) *time.Duration {
	if d == 0 {
		return nil
	}
	return &d
}

// namespaces returns the namespaces to watch, nil for all.
func namespaces(names []string) map[string]cache.Config {
	var configs map[string]cache.Config
	for _, name := range names {
		if configs == nil {
			configs = map[string]cache.Config{}
		}
		configs[name] = cache.Config{}
	}
	return configs
}

// makeControllers makes the informers and the controllers. The clients of the app read a kind from its informer if the
// informer has all objects of the kind.
func (a *App) makeControllers(kinds []*handled) error {
	var errs []error
	base := a.mgr
	if len(a.config.Converters) > 0 {
		base = uncheckedManager{a.mgr}
	}
	common, sharing := map[schema.GroupVersionKind]informer.Informer{}, map[*handled]informer.Informer{}
	for _, h := range kinds {
		if !h.takesAll(&a.config.InformerConfig) {
			continue
		}
		gvk := h.kind.GroupVersionKind()
		if common[gvk] == nil {
			view, made, err := a.inform(base, h)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			base, common[gvk] = view, made
		}
		sharing[h] = common[gvk]
	}
	a.base = reconcilers.NewConfig(
		base, nil, cmp.Or(a.config.InformerConfig.InformerOptions.CacheResyncInterval, informer.DefaultResyncInterval),
	)
	a.base.FairNamespaces = a.config.InformerConfig.FairNamespaces
	for _, h := range kinds {
		if shared, ok := sharing[h]; ok {
			errs = append(errs, a.control(base, a.base.WithTracker(), h, shared))
		} else if !h.takesAll(&a.config.InformerConfig) {
			view, own, err := a.inform(base, h)
			if err == nil {
				err = a.control(view, a.base.WithCluster(view).WithTracker(), h, own)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// inform makes an informer for a kind, and a view of the manager that uses it.
func (a *App) inform(mgr ctrl.Manager, h *handled) (ctrl.Manager, informer.Informer, error) {
	supplier := informer.Supplier(informer.DefaultSupplier)
	for _, own := range []informer.Supplier{a.config.InformerConfig.InformerSupplier, h.options.InformerSupplier} {
		if own != nil {
			supplier = own
		}
	}
	options := h.informerOptions(a.config.InformerConfig.InformerOptions)
	if a.divides(h) {
		options.LabelFilters = append(slices.Clip(options.LabelFilters), a.config.Shard.Selector().String())
	}
	made, err := supplier(h.kind, a.mgr, options)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", h.field, err)
	}
	if h.options.WhileServed {
		made = informer.WhileServed(made)
	}
	view, err := informer.View(mgr, h.name, made)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", h.field, err)
	}
	a.informers[h.name] = made
	return view, made, nil
}

// divides reports whether the objects of a kind are divided among replicas.
func (a *App) divides(h *handled) bool {
	return a.config.Shard != nil && a.config.Shard.Divides(h.kind.GroupVersionKind().GroupKind(), a.mgr.GetScheme())
}

// uncheckedManager ignores readiness checks.
type uncheckedManager struct{ ctrl.Manager }

func (uncheckedManager) AddReadyzCheck(string, healthz.Checker) error { return nil }

// control makes the controller of a kind.
func (a *App) control(mgr ctrl.Manager, config reconcilers.Config, h *handled, objects informer.Informer) error {
	if gvk := h.kind.GroupVersionKind(); a.configs[gvk].IsEmpty() && h.selectsAll(&a.config.InformerConfig) {
		a.configs[gvk] = config
	}
	if a.divides(h) {
		config.Shard = a.config.Shard
	}
	controller := &operator.Controller[resource.Object]{
		Name:     h.name,
		Type:     objects.Object(),
		Handlers: []reconcilers.SubReconciler[resource.Object]{h.handler(&a.config.InformerConfig)},
		MaxConcurrentReconciles: cmp.Or(
			h.options.MaxConcurrentReconciles, int(a.config.InformerConfig.InformerOptions.MaxConcurrentWorkers),
		),
		WhileServed:      lifecycle.RunsWhileServed(objects),
		SkipStatusUpdate: !h.managed, // the status belongs to another controller
		Config:           config,
	}
	a.controllers = append(a.controllers, controller)
	if err := controller.SetupWithManager(context.Background(), mgr); err != nil {
		return fmt.Errorf("%s: %w", h.field, err)
	}
	return nil
}
