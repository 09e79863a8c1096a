// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/client-go/rest"

	"trueup.dev/app"
	"trueup.dev/operator"
	"trueup.dev/resource"
)

// providedApp is an app that only notes what is done with it.
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
		"the app runs":    {provider: provider{app: &providedApp{}}},
		"there is no app": {provider: provider{app: &providedApp{}, err: errOnPurpose}, want: "make the app it: on purpose"},
		"the app does not do what it says": {
			provider: provider{app: &providedApp{unfaithful: errOnPurpose}}, want: "the app it does not do what its manifest says: on purpose",
		},
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
			if config.KubeConfig.Host != "nowhere.invalid" || config.SpecificConfig != "specific" || config.ManifestData.AppName != "it" {
				t.Errorf("config = %v", config)
			}
		})
	}
	if _, err := operator.NewRunner(operator.RunnerConfig{}); err == nil {
		t.Error("a Runner without a cluster is made")
	}
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
