// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"trueup.dev/app"
)

// Runner runs apps.
type Runner struct{ config RunnerConfig }

// RunnerConfig is what a Runner needs to know. Where metrics, health and webhooks are served is up to the app.
type RunnerConfig struct {
	// KubeConfig leads to the cluster of the app. Required.
	KubeConfig rest.Config
}

// NewRunner returns a Runner.
func NewRunner(config RunnerConfig) (*Runner, error) {
	if config.KubeConfig.Host == "" {
		return nil, errors.New("the runner must have a KubeConfig with a Host")
	}
	return &Runner{config}, nil
}

// Run makes the app of a provider, checks that it does what its manifest says, if it can tell, and runs it until ctx ends.
func (r *Runner) Run(ctx context.Context, provider app.Provider) error {
	manifest := provider.Manifest()
	made, err := provider.NewApp(app.Config{
		KubeConfig: *rest.CopyConfig(&r.config.KubeConfig), ManifestData: manifest, SpecificConfig: provider.SpecificConfig(),
	})
	if err != nil {
		return fmt.Errorf("make the app %s: %w", manifest.AppName, err)
	}
	if checker, ok := made.(interface{ ValidateManifest(app.ManifestData) error }); ok {
		if err := checker.ValidateManifest(manifest); err != nil {
			return fmt.Errorf("the app %s does not do what its manifest says: %w", manifest.AppName, err)
		}
	}
	return made.Runner().Run(ctx)
}
