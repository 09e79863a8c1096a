// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/app"
	"trueup.dev/resource"
)

// runServed runs an app together with its servers, until either ends.
func (r *Runner) runServed(ctx context.Context, made app.App, runnable app.Runnable, manifest app.ManifestData) error {
	name := manifest.AppName
	mgr, err := r.manager(made)
	if err != nil {
		return fmt.Errorf("serve the app %s: %w", name, err)
	}
	if r.servesWebhooks() {
		hooks := &AppWebhooks{
			App: made, Name: name, Mutated: made.ManagedKinds(), Validated: made.ManagedKinds(), Converted: true,
			Logger: mgr.GetLogger().WithName(name),
		}
		for path, handler := range hooks.Handlers() {
			mgr.GetWebhookServer().Register(path, handler)
		}
		if err := r.serveRoutes(mgr, made, manifest); err != nil {
			return fmt.Errorf("serve the app %s: %w", name, err)
		}
		if err := mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker()); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		defer stop()
		return runnable.Run(ctx)
	}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// serveRoutes registers the custom routes of an app.
func (r *Runner) serveRoutes(mgr ctrl.Manager, made app.App, manifest app.ManifestData) error {
	router, ok := made.(app.CustomRouter)
	if !ok || !servesRoutes(made, manifest) {
		return nil // an app without routes needs no permission to review users
	}
	handler, err := AppRoutes{
		App: router, Name: manifest.AppName, Kinds: made.ManagedKinds(), Group: manifest.Group,
		KubeConfig: mgr.GetConfig(), Logger: mgr.GetLogger().WithName(manifest.AppName),
	}.Handler()
	if err == nil {
		mgr.GetWebhookServer().Register(CustomRoutesPath, handler)
	}
	return err
}

func (r *Runner) manager(made app.App) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := resource.AddToScheme(scheme, made.ManagedKinds()...); err != nil {
		return nil, err
	}
	m, h, w := r.config.MetricsConfig, r.config.HealthConfig, r.config.WebhookConfig
	dir, cert, key, err := w.TLSConfig.split()
	if r.servesWebhooks() && err != nil {
		return nil, fmt.Errorf("WebhookConfig.TLSConfig: %w", err)
	}
	if m.Enabled {
		if err := collectors(made, metrics.Registry); err != nil {
			return nil, err
		}
	}
	mgr, err := ctrl.NewManager(rest.CopyConfig(&r.config.KubeConfig), ctrl.Options{
		Scheme: scheme,
		Metrics: metricsserver.Options{
			BindAddress: bindAddress(m.Enabled, m.Host, cmp.Or(m.Port, 9090)), ExtraHandlers: profiles(m.ProfilingEnabled),
		},
		HealthProbeBindAddress: bindAddress(h.Enabled, h.Host, cmp.Or(h.Port, 8081)),
		LivenessEndpointName:   "/livez",
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: w.Host, Port: w.Port, CertDir: dir, CertName: cert, KeyName: key,
		}),
		GracefulShutdownTimeout: new(time.Duration(-1)), // the app has its own timeout
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if checked, ok := made.(app.HealthChecker); ok {
		for _, check := range checked.HealthChecks() {
			err := mgr.AddReadyzCheck(check.HealthCheckName(), func(req *http.Request) error {
				return check.HealthCheck(req.Context())
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return mgr, nil
}

// profiles returns the handlers of net/http/pprof by path.
func profiles(enabled bool) map[string]http.Handler {
	if !enabled {
		return nil
	}
	return map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	}
}
