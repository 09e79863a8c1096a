// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"

	"trueup.dev/app"
	"trueup.dev/operator"
	"trueup.dev/simple"
)

func TestProvider(t *testing.T) {
	e := newEnv(t)
	var calls record
	manifest := app.ManifestData{
		AppName: "provided", Group: group,
		Versions: []app.ManifestVersion{{Name: "v1", Kinds: []app.ManifestVersionKind{{Kind: "Widget"}}}},
	}
	provider := simple.NewAppProvider(manifest, "specific", func(given app.Config) (app.App, error) {
		if given.SpecificConfig != "specific" || given.ManifestData.AppName != "provided" {
			return nil, fmt.Errorf("the config is %v", given)
		}
		config := e.config(given.ManifestData.AppName)
		config.KubeConfig = given.KubeConfig
		config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Watcher: calls.watcher()}}
		return simple.NewApp(config)
	})
	runner, err := operator.NewRunner(operator.RunnerConfig{KubeConfig: *e.RESTConfig()})
	e.Must(err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx, provider) }()
	e.Add(newWidget("it", ""))
	e.Eventually(func() error { return calls.has("add it") })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the runner ended with: %v", err)
	}
}

// A kind without a handler has webhooks and is part of the manifest, but is not watched.
func TestKindsWithoutHandlers(t *testing.T) {
	e := newEnv(t, crd("Gauge", "gauges", "v1", "v2"))
	config := e.config("unwatched")
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: widgetKind}, {Kind: gaugeV1, Validator: &simple.Validator{}}, {Kind: gaugeV2},
	}
	made := e.make(config)
	if err := made.ValidateManifest(app.ManifestData{Group: group, Versions: []app.ManifestVersion{
		{
			Name: "v1", Kinds: []app.ManifestVersionKind{{Kind: "Widget"}, {Kind: "Gauge"}},
		}, {Name: "v2", Kinds: []app.ManifestVersionKind{{Kind: "Gauge"}}},
	}}); err != nil {
		t.Errorf("the manifest differs: %v", err)
	}
	if checks := made.HealthChecks(); len(checks) > 0 {
		t.Errorf("the app waits for informers: %v", checks)
	}
	if got := len(made.ManagedKinds()); got != 3 {
		t.Errorf("%d managed kinds, want 3", got)
	}
	config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind}}
	e.start(config)
}

func TestValidateManifest(t *testing.T) {
	e := newEnv(t, crd("Gauge", "gauges", "v1", "v2"))
	config := e.config("manifest")
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: widgetKind, Watcher: &simple.Watcher{}}, {
			Kind: gaugeV1, Mutator: &simple.Mutator{}, Validator: &simple.Validator{},
		}, {Kind: gaugeV2},
	}
	config.Converters = map[schema.GroupKind]simple.Converter{gaugeV1.GroupKind(): gadgets()}
	made := e.make(config)
	any := &app.AdmissionCapability{Operations: []app.AdmissionAction{app.AdmissionActionAny}}
	both := &app.AdmissionCapabilities{Validation: any, Mutation: any}
	err := made.ValidateManifest(app.ManifestData{Group: group, Versions: []app.ManifestVersion{
		{
			Name: "v1",
			Kinds: []app.ManifestVersionKind{
				{Kind: "Gauge", Admission: both, Conversion: true}, {Kind: "Widget", Admission: both, Conversion: true},
			},
		},
		{Name: "v2", Kinds: []app.ManifestVersionKind{{Kind: "Gauge", Conversion: true}, {Kind: "Widget"}}},
	}})
	want := `simple.example.com/v1, Kind=Widget has no Mutator
simple.example.com/v1, Kind=Widget has no Validator
simple.example.com/v1, Kind=Widget has no Converter
simple.example.com/v2, Kind=Widget is not among ManagedKinds`
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	if err := made.ValidateManifest(app.ManifestData{}); err != nil {
		t.Errorf("the empty manifest: %v", err)
	}
}

// The routes of a manifest are compared with the routes of the app, and paths with and without slashes are equal.
func TestValidateManifest_CustomRoutes(t *testing.T) {
	config := simple.AppConfig{
		Name: "routes", KubeConfig: rest.Config{Host: "nowhere.invalid"}, MetricsBindAddress: "0", HealthBindAddress: "0",
		ManagedKinds: []simple.AppManagedKind{
			{Kind: widgetKind, CustomRoutes: simple.AppCustomRouteHandlers{{Method: "GET", Path: "goto"}: echo}},
		},
		VersionedCustomRoutes: map[string]simple.AppVersionRouteHandlers{
			"v1": {{Namespaced: true, Method: "GET", Path: "/summary"}: echo},
		},
	}
	made, err := simple.NewApp(config)
	if err != nil {
		t.Fatal(err)
	}
	get := spec3.PathProps{Get: &spec3.Operation{}}
	getAndPut := spec3.PathProps{Get: &spec3.Operation{}, Put: &spec3.Operation{}}
	manifest := func(paths ...spec3.PathProps) app.ManifestData {
		return app.ManifestData{Group: group, Versions: []app.ManifestVersion{{
			Name: "v1", Kinds: []app.ManifestVersionKind{
				{Kind: "Widget", Routes: map[string]spec3.PathProps{"/goto": paths[0]}},
			},
			Routes: app.ManifestVersionRoutes{
				Namespaced: map[string]spec3.PathProps{"/summary": paths[1]}, Cluster: map[string]spec3.PathProps{"/all": paths[2]},
			},
		}}}
	}
	if err := made.ValidateManifest(manifest(get, get, spec3.PathProps{})); err != nil {
		t.Errorf("an equal manifest: %v", err)
	}
	want := `namespaced custom route "summary" of version v1 has no handler for PUT
custom route "all" of version v1 has no handler for GET
custom route "goto" of simple.example.com/v1, Kind=Widget has no handler for PUT`
	if err := made.ValidateManifest(manifest(getAndPut, getAndPut, get)); err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

// Without a kind and a manifest, the group of a route is unknown.
func TestCustomRoutes_WithoutAGroup(t *testing.T) {
	made, err := simple.NewApp(simple.AppConfig{
		Name: "groupless", KubeConfig: rest.Config{Host: "nowhere.invalid"}, MetricsBindAddress: "0", HealthBindAddress: "0",
		VersionedCustomRoutes: map[string]simple.AppVersionRouteHandlers{"v1": {{Method: "GET", Path: "summary"}: echo}},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = made.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the group of VersionedCustomRoutes is unknown") {
		t.Errorf("Run = %v", err)
	}
}
