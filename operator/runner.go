// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"trueup.dev/app"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/logging"
)

// Runner runs apps: apps of package simple and any other [app.App].
type Runner struct{ config RunnerConfig }

// RunnerConfig configures the connection to the cluster and the servers of a Runner. An app of package simple also
// starts its own servers, as its own config defines. Its webhooks are the exception: WebhookConfig replaces their
// server.
type RunnerConfig struct {
	// KubeConfig is the connection to the cluster of the app. Required.
	KubeConfig rest.Config
	// WebhookConfig serves admission and conversion webhooks for all ManagedKinds of the app, and the custom routes of
	// an [app.CustomRouter], see [AppRoutes]. Default: neither is served.
	WebhookConfig RunnerWebhookConfig
	// MetricsConfig serves metrics. Default: no metrics are served.
	MetricsConfig RunnerMetricsConfig
	// HealthConfig serves the health of the app. Default: it is not served.
	HealthConfig RunnerHealthConfig
}

// RunnerWebhookConfig configures the webhook server, see [AppWebhooks] for its paths.
type RunnerWebhookConfig struct {
	// Host is the address to listen on. Default: all addresses of the machine.
	Host string
	// Port to listen on. Default: 9443.
	Port int
	// TLSConfig is the certificate of the server. Required to serve webhooks.
	TLSConfig RunnerTLSConfig
}

// RunnerTLSConfig names the files of a certificate. They are reloaded when they change.
type RunnerTLSConfig struct {
	// CertPath is the path of the certificate, KeyPath the path of its key, in PEM.
	CertPath, KeyPath string
}

// RunnerMetricsConfig configures the metrics server. It serves under /metrics the metrics of controller-runtime, of
// this module, and of the app if it has a method PrometheusCollectors() []prometheus.Collector.
type RunnerMetricsConfig struct {
	// Enabled serves metrics. Defaults to false.
	Enabled bool
	// ProfilingEnabled also serves the profiles of net/http/pprof under /debug/pprof. Defaults to false.
	ProfilingEnabled bool
	// Host is the address to listen on. Default: all addresses of the machine.
	Host string
	// MetricsServerConfig has the port.
	MetricsServerConfig
}

// MetricsServerConfig configures the port of a metrics server.
type MetricsServerConfig struct {
	// Port to listen on. Default: 9090.
	Port int
}

// RunnerHealthConfig configures the health server. /livez succeeds while the process responds. /readyz runs the checks
// of the app, if it is an [app.HealthChecker], and checks the webhook server.
type RunnerHealthConfig struct {
	// Enabled serves health. Defaults to false.
	Enabled bool
	// Host is the address to listen on. Default: all addresses of the machine.
	Host string
	// Port to listen on. Default: 8081.
	Port int
}

// NewRunner returns a Runner. The error lists all problems of the config.
func NewRunner(config RunnerConfig) (*Runner, error) {
	var problems []error
	if config.KubeConfig.Host == "" {
		problems = append(problems, errors.New("the runner must have a KubeConfig with a Host"))
	}
	w := config.WebhookConfig
	if w != (RunnerWebhookConfig{}) && (w.TLSConfig.CertPath == "" || w.TLSConfig.KeyPath == "") {
		problems = append(
			problems, errors.New("the runner must have WebhookConfig.TLSConfig.CertPath and .KeyPath to serve webhooks"),
		)
	}
	for _, p := range []struct {
		field string
		port  int
	}{
		{"WebhookConfig", w.Port}, {"MetricsConfig", config.MetricsConfig.Port}, {"HealthConfig", config.HealthConfig.Port},
	} {
		if p.port < 0 || p.port > 65535 {
			problems = append(
				problems, fmt.Errorf("the runner must have a port from 1 to 65535 in %s.Port, got %d", p.field, p.port),
			)
		}
	}
	return &Runner{config}, errors.Join(problems...)
}

// Run makes the app of a provider and runs it until ctx ends or the app stops. It warns about differences between the
// manifest and the app with the logger of ctx.
func (r *Runner) Run(ctx context.Context, provider app.Provider) error {
	if nilcheck.IsNil(provider) {
		return errors.New("the provider of the app must not be nil")
	}
	manifest := provider.Manifest()
	made, err := provider.NewApp(app.Config{
		KubeConfig: *rest.CopyConfig(&r.config.KubeConfig), ManifestData: manifest, SpecificConfig: provider.SpecificConfig(),
	})
	if err != nil {
		return fmt.Errorf("make the app %s: %w", manifest.AppName, err)
	}
	if nilcheck.IsNil(made) {
		return fmt.Errorf("make the app %s: the provider returned neither an app nor an error", manifest.AppName)
	}
	for _, difference := range r.differences(made, manifest) {
		logging.FromContext(ctx).Warn("the manifest and the app differ", "app", manifest.AppName, "difference", difference)
	}
	runnable := made.Runner()
	if nilcheck.IsNil(runnable) {
		return fmt.Errorf("run the app %s: its Runner is nil", manifest.AppName)
	}
	if own, ok := made.(webhookOwner); ok {
		if own.ServeWebhooksOf(made); r.servesWebhooks() {
			own.ServeWebhooksOf(nil)
		}
	}
	if !r.servesWebhooks() && !r.config.MetricsConfig.Enabled && !r.config.HealthConfig.Enabled {
		return runnable.Run(ctx)
	}
	return r.runServed(ctx, made, runnable, manifest)
}

// webhookOwner is an app that serves webhooks itself: the routes of the app that contains it, or none if outer is nil.
type webhookOwner interface{ ServeWebhooksOf(outer app.App) }

func (r *Runner) servesWebhooks() bool { return r.config.WebhookConfig != RunnerWebhookConfig{} }

// differences returns the differences between the manifest and the app.
func (r *Runner) differences(made app.App, manifest app.ManifestData) []string {
	var differences []string
	managed := map[schema.GroupVersionKind]bool{} // the value reports whether the manifest has the kind
	for _, kind := range made.ManagedKinds() {
		managed[kind.GroupVersionKind()] = false
	}
	_, owner := made.(webhookOwner)
	hasWebhooks := false
	for _, version := range manifest.Versions {
		for _, kind := range version.Kinds {
			gvk := schema.GroupVersionKind{Group: manifest.Group, Version: version.Name, Kind: kind.Kind}
			if _, ok := managed[gvk]; !ok {
				differences = append(differences, fmt.Sprintf("%s is not among ManagedKinds", gvk))
			}
			managed[gvk] = true
			hasWebhooks = hasWebhooks || kind.SupportsMutation() || kind.SupportsValidation() || kind.Conversion
		}
	}
	if checker, ok := made.(interface{ ValidateManifest(app.ManifestData) error }); ok {
		if err := checker.ValidateManifest(manifest); err != nil {
			differences = linesOf(err)
		}
	}
	if hasWebhooks && !owner && !r.servesWebhooks() {
		differences = append(
			differences, "the manifest has webhooks, but no server is configured: set RunnerConfig.WebhookConfig",
		)
	}
	_, router := made.(app.CustomRouter)
	switch {
	case hasRoutes(manifest) && !router:
		differences = append(differences, "the manifest has custom routes, but the app is not an app.CustomRouter")
	case router && servesRoutes(made, manifest) && !owner && !r.servesWebhooks():
		differences = append(
			differences, "the app has custom routes, but no server is configured: set RunnerConfig.WebhookConfig",
		)
	}
	for _, kind := range made.ManagedKinds() {
		if len(manifest.Versions) > 0 && !managed[kind.GroupVersionKind()] {
			differences = append(differences, fmt.Sprintf("%s is not in the manifest", kind.GroupVersionKind()))
		}
	}
	return differences
}

// hasRoutes reports whether the manifest has custom routes.
func hasRoutes(manifest app.ManifestData) bool {
	return slices.ContainsFunc(manifest.Versions, func(v app.ManifestVersion) bool {
		return len(v.Routes.Namespaced)+len(v.Routes.Cluster) > 0 ||
			slices.ContainsFunc(v.Kinds, func(k app.ManifestVersionKind) bool { return len(k.Routes) > 0 })
	})
}

// servesRoutes reports whether the app has custom routes: the routes of the manifest, or others that the app knows.
func servesRoutes(made app.App, manifest app.ManifestData) bool {
	routed, ok := made.(interface{ HasCustomRoutes() bool })
	return ok && routed.HasCustomRoutes() || hasRoutes(manifest)
}

func linesOf(err error) []string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []string{err.Error()}
	}
	var lines []string
	for _, err := range joined.Unwrap() {
		lines = append(lines, err.Error())
	}
	return lines
}

// collectors registers the metrics of an app, unless they are registered already.
func collectors(made app.App, registry prometheus.Registerer) error {
	provider, ok := made.(interface{ PrometheusCollectors() []prometheus.Collector })
	if !ok {
		return nil
	}
	for _, collector := range provider.PrometheusCollectors() {
		var known prometheus.AlreadyRegisteredError
		if err := registry.Register(collector); err != nil && !errors.As(err, &known) {
			return fmt.Errorf("register the metrics of the app: %w", err)
		}
	}
	return nil
}

// bindAddress returns the address to listen on, "0" if disabled.
func bindAddress(enabled bool, host string, port int) string {
	if !enabled {
		return "0"
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// split returns the paths in the form that controller-runtime expects: a directory, and files relative to it.
func (c RunnerTLSConfig) split() (dir, cert, key string, err error) {
	certPath, certErr := filepath.Abs(c.CertPath)
	keyPath, keyErr := filepath.Abs(c.KeyPath)
	dir, cert = filepath.Dir(certPath), filepath.Base(certPath)
	key, err = filepath.Rel(dir, keyPath)
	return dir, cert, key, errors.Join(certErr, keyErr, err)
}
