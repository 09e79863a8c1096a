// SPDX-License-Identifier: Apache-2.0

// Package app is the app of Issues.
package app

import (
	"context"
	"fmt"

	"github.com/grafana/grafana-app-sdk/app"
	"github.com/grafana/grafana-app-sdk/operator"
	"github.com/grafana/grafana-app-sdk/simple"

	"example.com/issues/v1"
	"example.com/issues/watchers"
)

// Config is the specific config.
type Config struct {
	Info watchers.Info
}

// Manifest describes the app.
func Manifest() app.ManifestData {
	return app.ManifestData{AppName: "issues", Group: "tracker.example.com"}
}

// Provider provides the app.
func Provider(config Config) app.Provider {
	return simple.NewAppProvider(app.NewEmbeddedManifest(Manifest()), config, New)
}

// New returns the app.
func New(cfg app.Config) (app.App, error) {
	config, ok := cfg.SpecificConfig.(Config)
	if !ok {
		return nil, fmt.Errorf("got a %T", cfg.SpecificConfig)
	}
	return simple.NewApp(simple.AppConfig{
		Name:       "issues",
		KubeConfig: cfg.KubeConfig,
		InformerConfig: simple.AppInformerConfig{
			InformerOptions: operator.InformerOptions{
				ErrorHandler: func(ctx context.Context, err error) {
					fmt.Println(err)
				},
			},
			RetryPolicy: operator.ExponentialBackoffRetryPolicy(5, 5),
		},
		ManagedKinds: []simple.AppManagedKind{{
			Kind:    v1.IssueKind(),
			Watcher: watchers.NewIssueWatcher(config.Info),
			Validator: &simple.Validator{
				ValidateFunc: func(ctx context.Context, req *app.AdmissionRequest) error {
					if issue, ok := req.Object.(*v1.Issue); ok && issue.Spec.Title == "" {
						return fmt.Errorf("an issue needs a title")
					}
					return nil
				},
			},
		}},
	})
}
