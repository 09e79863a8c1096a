// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"trueup.dev/resource"
)

// ErrNotImplemented is what an [App] answers for kinds that it does not validate, mutate or convert.
var ErrNotImplemented = errors.New("not implemented")

// App manages kinds of resources. Its methods are safe for concurrent use.
type App interface {
	// Validate returns an error if the request must be denied. It is [ErrNotImplemented] for kinds that are not validated.
	Validate(ctx context.Context, req *AdmissionRequest) error
	// Mutate returns the object as it should be stored, or an error if the request must be denied. It is [ErrNotImplemented] for kinds that are not mutated.
	Mutate(ctx context.Context, req *AdmissionRequest) (*MutatingResponse, error)
	// Convert returns an object in another version of its kind. The error is [ErrNotImplemented] for kinds that are not converted.
	Convert(ctx context.Context, req ConversionRequest) (*RawObject, error)
	// ManagedKinds are the kinds that the app manages, each version of a kind for itself.
	ManagedKinds() []resource.Kind
	// Runner runs the app: its controllers, its webhooks and all else it consists of.
	Runner() Runnable
}

// HealthCheck is a check of the readiness of an app. Its methods are safe for concurrent use.
type HealthCheck interface {
	// HealthCheckName is the name of the check, unique within the app.
	HealthCheckName() string
	// HealthCheck returns an error while the app is not ready.
	HealthCheck(ctx context.Context) error
}

// HealthChecker is an [App] with checks of its readiness.
type HealthChecker interface {
	HealthChecks() []HealthCheck
}

// Runnable is something that runs.
type Runnable interface {
	// Run runs until ctx ends, and returns nil then, or until something has gone wrong.
	Run(ctx context.Context) error
}

// RunnableFunc is a [Runnable] made of a function.
type RunnableFunc func(ctx context.Context) error

// Run calls the function.
func (f RunnableFunc) Run(ctx context.Context) error { return f(ctx) }

// Provider makes an App for a cluster.
type Provider interface {
	// Manifest describes the app.
	Manifest() ManifestData
	// SpecificConfig is what only this app knows about. It is handed to NewApp.
	SpecificConfig() SpecificConfig
	// NewApp makes the app.
	NewApp(config Config) (App, error)
}

// SpecificConfig is the config of one app, of a type of its own.
type SpecificConfig any

// Config is what an App is made of.
type Config struct {
	// KubeConfig leads to the cluster.
	KubeConfig rest.Config
	// ManifestData is the manifest of the provider.
	ManifestData ManifestData
	// SpecificConfig is that of the provider.
	SpecificConfig SpecificConfig
}
