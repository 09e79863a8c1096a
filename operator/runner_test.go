// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"

	"trueup.dev/app"
	"trueup.dev/operator"
	"trueup.dev/resource"
)

// providedApp is an app that records how it is used.
type providedApp struct {
	config     app.Config
	ran        bool
	unfaithful error
}

func (*providedApp) Validate(context.Context, *app.AdmissionRequest) error {
	return app.ErrNotImplemented
}

func (*providedApp) Mutate(context.Context, *app.AdmissionRequest) (*app.MutatingResponse, error) {
	return nil, app.ErrNotImplemented
}

func (*providedApp) Convert(context.Context, app.ConversionRequest) (*app.RawObject, error) {
	return nil, app.ErrNotImplemented
}

func (*providedApp) ManagedKinds() []resource.Kind { return nil }

func (a *providedApp) ValidateManifest(app.ManifestData) error { return a.unfaithful }

func (a *providedApp) Runner() app.Runnable {
	return app.RunnableFunc(func(context.Context) error {
		a.ran = true
		return nil
	})
}

type provider struct {
	app *providedApp
	err error
}

func (provider) Manifest() app.ManifestData { return app.ManifestData{AppName: "it"} }

func (provider) SpecificConfig() app.SpecificConfig { return "specific" }

func (p provider) NewApp(config app.Config) (app.App, error) {
	p.app.config = config
	return p.app, p.err
}

func TestRunner(t *testing.T) {
	errOnPurpose := errors.New("on purpose")
	for name, tc := range map[string]struct {
		provider provider
		want     string
	}{
		"the app runs": {provider: provider{app: &providedApp{}}},
		"there is no app": {
			provider: provider{app: &providedApp{}, err: errOnPurpose}, want: "make the app it: on purpose",
		},
		"the app does not do what it says": {provider: provider{app: &providedApp{unfaithful: errOnPurpose}}},
	} {
		t.Run(name, func(t *testing.T) {
			runner, err := operator.NewRunner(operator.RunnerConfig{KubeConfig: rest.Config{Host: "nowhere.invalid"}})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := runner.Run(t.Context(), tc.provider); err != nil {
				got = err.Error()
			}
			if got != tc.want || tc.provider.app.ran != (tc.want == "") {
				t.Errorf("error = %q, want %q; ran = %t", got, tc.want, tc.provider.app.ran)
			}
			config := tc.provider.app.config
			if config.KubeConfig.Host != "nowhere.invalid" || config.SpecificConfig != "specific" ||
				config.ManifestData.AppName != "it" {
				t.Errorf("config = %v", config)
			}
		})
	}
}

func TestNewRunner_ListsAllMistakes(t *testing.T) {
	_, err := operator.NewRunner(operator.RunnerConfig{
		WebhookConfig: operator.RunnerWebhookConfig{Port: 8443}, MetricsConfig: operator.RunnerMetricsConfig{
			MetricsServerConfig: operator.MetricsServerConfig{Port: -1},
		},
		HealthConfig: operator.RunnerHealthConfig{Port: 70000},
	})
	wantText(t, `the runner must have a KubeConfig with a Host
the runner must have WebhookConfig.TLSConfig.CertPath and .KeyPath to serve webhooks
the runner must have a port from 1 to 65535 in MetricsConfig.Port, got -1
the runner must have a port from 1 to 65535 in HealthConfig.Port, got 70000`, err)
}

// brokenProvider returns invalid values.
type brokenProvider struct {
	provider
	app app.App
}

func (p brokenProvider) NewApp(app.Config) (app.App, error) { return p.app, nil }

// idleApp is an app without a Runner.
type idleApp struct{ app.App }

func (idleApp) ManagedKinds() []resource.Kind { return nil }

func (idleApp) Runner() app.Runnable { return nil }

func TestRunner_NilApp(t *testing.T) {
	runner, err := operator.NewRunner(operator.RunnerConfig{KubeConfig: rest.Config{Host: "nowhere.invalid"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		provider app.Provider
		want     string
	}{
		"no provider": {nil, "the provider of the app must not be nil"},
		"no app":      {brokenProvider{}, "make the app it: the provider returned neither an app nor an error"},
		"nil app": {
			brokenProvider{app: (*providedApp)(nil)}, "make the app it: the provider returned neither an app nor an error",
		},
		"no runner": {brokenProvider{app: idleApp{}}, "run the app it: its Runner is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			wantText(t, tc.want, runner.Run(t.Context(), tc.provider))
		})
	}
}

// Differences between the manifest and the app are warnings, and the app runs.
func TestRunner_WarnsWhereTheManifestAndTheAppDiffer(t *testing.T) {
	var warnings []string
	log := funcr.New(func(_, args string) { warnings = append(warnings, args) }, funcr.Options{})
	runner, err := operator.NewRunner(operator.RunnerConfig{KubeConfig: rest.Config{Host: "nowhere.invalid"}})
	if err != nil {
		t.Fatal(err)
	}
	ran := false
	different := brokenProvider{app: kindsApp{ran: &ran}}
	if err := runner.Run(logr.NewContext(t.Context(), log), manifested{different}); err != nil || !ran {
		t.Fatalf("error = %v, ran = %t", err, ran)
	}
	for _, want := range []string{
		"example.com/v1, Kind=Widget is not among ManagedKinds",
		"the manifest has webhooks, but no server is configured: set RunnerConfig.WebhookConfig",
		"/v1, Kind=ConfigMap is not in the manifest",
		"the manifest has custom routes, but the app is not an app.CustomRouter",
	} {
		if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("no warning %q among %q", want, warnings)
		}
	}
	if len(warnings) != 4 {
		t.Errorf("%d warnings, want 4: %q", len(warnings), warnings)
	}
	warnings = nil
	routed := brokenProvider{app: routedApp{kindsApp{ran: &ran}}}
	if err := runner.Run(logr.NewContext(t.Context(), log), manifested{routed}); err != nil {
		t.Fatal(err)
	}
	want := "the app has custom routes, but no server is configured: set RunnerConfig.WebhookConfig"
	if len(warnings) != 4 || !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, want) }) {
		t.Errorf("no warning %q among %q", want, warnings)
	}
}

// routedApp is an app that does not say which custom routes it has.
type routedApp struct{ kindsApp }

func (routedApp) CallCustomRoute(context.Context, app.CustomRouteResponseWriter, *app.CustomRouteRequest) error {
	return app.ErrCustomRouteNotFound
}

// kindsApp is an app with one kind only.
type kindsApp struct {
	app.App
	ran *bool
}

func (kindsApp) ManagedKinds() []resource.Kind {
	return []resource.Kind{{Schema: resource.NewSimpleSchema("", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{})}}
}

func (a kindsApp) Runner() app.Runnable {
	return app.RunnableFunc(func(context.Context) error { *a.ran = true; return nil })
}

// manifested is a provider whose manifest has another kind than its app.
type manifested struct{ brokenProvider }

func (manifested) Manifest() app.ManifestData {
	return app.ManifestData{AppName: "it", Group: "example.com", Versions: []app.ManifestVersion{
		{
			Name: "v1", Kinds: []app.ManifestVersionKind{{Kind: "Widget", Conversion: true}},
			Routes: app.ManifestVersionRoutes{Cluster: map[string]spec3.PathProps{"/all": {Get: &spec3.Operation{}}}},
		},
	}}
}

func ExampleRunner() {
	runner, err := operator.NewRunner(operator.RunnerConfig{KubeConfig: rest.Config{Host: "https://cluster.example.com"}})
	if err != nil {
		panic(err)
	}
	var provider app.Provider // simple.NewAppProvider makes one
	if err := runner.Run(context.Background(), provider); err != nil {
		panic(err)
	}
}
