// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"trueup.dev/resource"
)

// ErrNotImplemented is returned by an [App] for kinds that it does not validate, mutate or convert.
var ErrNotImplemented = errors.New("not implemented")

// App manages kinds of resources. Its methods are safe for concurrent use.
type App interface {
	// Validate returns an error if the request must be denied. It returns [ErrNotImplemented] for kinds that are not
	// validated.
	Validate(ctx context.Context, req *AdmissionRequest) error
	// Mutate returns the object to store, or an error if the request must be denied. It returns [ErrNotImplemented] for
	// kinds that are not mutated.
	Mutate(ctx context.Context, req *AdmissionRequest) (*MutatingResponse, error)
	// Convert returns an object in another version of its kind. It returns [ErrNotImplemented] for kinds that are not
	// converted.
	Convert(ctx context.Context, req ConversionRequest) (*RawObject, error)
	// ManagedKinds returns the kinds that the app manages, one for each version.
	ManagedKinds() []resource.Kind
	// Runner returns the Runnable that runs the controllers and webhooks of the app.
	Runner() Runnable
}

// HealthCheck is a readiness check of an app. Its methods are safe for concurrent use.
type HealthCheck interface {
	// HealthCheckName returns the name of the check, unique within the app.
	HealthCheckName() string
	// HealthCheck returns an error while the app is not ready.
	HealthCheck(ctx context.Context) error
}

// HealthChecker is an [App] with readiness checks.
type HealthChecker interface {
	HealthChecks() []HealthCheck
}

// Runnable is a component that runs until its context ends.
type Runnable interface {
	// Run runs until ctx ends and then returns nil. It returns an error if it fails before.
	Run(ctx context.Context) error
}

// RunnableFunc is a function that implements [Runnable].
type RunnableFunc func(ctx context.Context) error

// Run calls the function.
func (f RunnableFunc) Run(ctx context.Context) error { return f(ctx) }

// Provider makes an App for a cluster.
type Provider interface {
	// Manifest returns the description of the app.
	Manifest() ManifestData
	// SpecificConfig returns the configuration that only this app uses. It is passed to NewApp.
	SpecificConfig() SpecificConfig
	// NewApp makes the app.
	NewApp(config Config) (App, error)
}

// SpecificConfig is the configuration of one app, of an app-specific type.
type SpecificConfig any

// Config is the configuration of an App.
type Config struct {
	// KubeConfig is the REST configuration of the cluster.
	KubeConfig rest.Config
	// ManifestData is the manifest of the provider.
	ManifestData ManifestData
	// SpecificConfig is the specific configuration of the provider.
	SpecificConfig SpecificConfig
}
