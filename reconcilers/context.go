// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/guard"
)

// scope is what a root reconciler puts on the context for everything below it. One context value holds it all; the
// Stash… functions put a changed copy on a derived context, so that values never leak upwards.
type scope struct {
	request              Request
	config               *Config
	originalConfig       *Config
	resourceType         client.Object
	originalResourceType client.Object
	// uid is that of the reconciled resource, "" while it is not known.
	uid               types.UID
	additionalConfigs map[string]Config
	// requestErr is the Err of the context that the root reconciler was called with.
	requestErr func() error
	// journal holds what the request has written. It is nil outside of controllers.
	journal *guard.Journal
	// reflected notes the errors that the request reflects. It is nil outside of root reconcilers.
	reflected *reflected
	// watched knows which kinds the controller watches. It is nil outside of root reconcilers with a controller.
	watched *watched
	// waits is what the request waits for. It is nil outside of requests of root reconcilers.
	waits *waits
}

type scopeKey struct{}

func scopeFrom(ctx context.Context) scope {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		return *s
	}
	return scope{}
}

func (s scope) onto(ctx context.Context) context.Context {
	return context.WithValue(ctx, scopeKey{}, &s)
}

// ontoRoot puts the scope on the context of a root reconciler's caller, whose additional configs are kept.
func (s *scope) ontoRoot(ctx context.Context) context.Context {
	s.additionalConfigs = scopeFrom(ctx).additionalConfigs
	return context.WithValue(ctx, scopeKey{}, s)
}

func journalFrom(ctx context.Context) *guard.Journal {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		return s.journal
	}
	return nil
}

// StashRequest puts the reconcile request on the context.
func StashRequest(ctx context.Context, req Request) context.Context {
	s := scopeFrom(ctx)
	s.request = req
	return s.onto(ctx)
}

// RetrieveRequest returns the reconcile request from the context, and a zero request when there is none.
func RetrieveRequest(ctx context.Context) Request {
	return scopeFrom(ctx).request
}

// StashConfig puts the current config on the context: the one sub reconcilers use for everything but the reconciled
// resource itself.
func StashConfig(ctx context.Context, config Config) context.Context {
	s := scopeFrom(ctx)
	s.config = &config
	return s.onto(ctx)
}

var (
	errMissingConfig = errors.New(
		"config must exist on the context. Check that the context is from a ResourceReconciler or WithConfig",
	)
	errMissingOriginalConfig = errors.New(
		"resource config must exist on the context. Check that the context is from a ResourceReconciler",
	)
)

// RetrieveConfig returns the current config from the context. It fails when the context does not come from a root
// reconciler or [StashConfig].
func RetrieveConfig(ctx context.Context) (Config, error) {
	if config := scopeFrom(ctx).config; config != nil {
		return *config, nil
	}
	return Config{}, errMissingConfig
}

// RetrieveConfigOrDie is [RetrieveConfig] that panics with the error.
func RetrieveConfigOrDie(ctx context.Context) Config {
	return orDie(RetrieveConfig(ctx))
}

// StashOriginalConfig puts the config that loaded the reconciled resource on the context. It stays the same below a
// reconciler that changes the current config.
func StashOriginalConfig(ctx context.Context, resourceConfig Config) context.Context {
	s := scopeFrom(ctx)
	s.originalConfig = &resourceConfig
	return s.onto(ctx)
}

// RetrieveOriginalConfig returns the config that loaded the reconciled resource. It fails when the context does not
// come from a root reconciler or [StashOriginalConfig].
func RetrieveOriginalConfig(ctx context.Context) (Config, error) {
	if config := scopeFrom(ctx).originalConfig; config != nil {
		return *config, nil
	}
	return Config{}, errMissingOriginalConfig
}

// RetrieveOriginalConfigOrDie is [RetrieveOriginalConfig] that panics with the error.
func RetrieveOriginalConfigOrDie(ctx context.Context) Config {
	return orDie(RetrieveOriginalConfig(ctx))
}

func orDie(config Config, err error) Config {
	if err != nil {
		panic(err)
	}
	return config
}

// StashResourceType puts the type that reconcilers currently see the resource as on the context.
func StashResourceType(ctx context.Context, currentType client.Object) context.Context {
	s := scopeFrom(ctx)
	s.resourceType = currentType
	return s.onto(ctx)
}

// RetrieveResourceType returns the type that reconcilers currently see the resource as, and nil when there is none on
// the context.
func RetrieveResourceType(ctx context.Context) client.Object {
	return scopeFrom(ctx).resourceType
}

// StashOriginalResourceType puts the type that the resource was loaded as on the context.
func StashOriginalResourceType(ctx context.Context, resourceType client.Object) context.Context {
	s := scopeFrom(ctx)
	s.originalResourceType = resourceType
	return s.onto(ctx)
}

// RetrieveOriginalResourceType returns the type that the resource was loaded as, and nil when there is none on the
// context.
func RetrieveOriginalResourceType(ctx context.Context) client.Object {
	return scopeFrom(ctx).originalResourceType
}

// StashAdditionalConfigs puts further configs, by name, on the context. They are meant for tests of reconcilers that
// work with several configs.
func StashAdditionalConfigs(ctx context.Context, additionalConfigs map[string]Config) context.Context {
	s := scopeFrom(ctx)
	s.additionalConfigs = additionalConfigs
	return s.onto(ctx)
}

// RetrieveAdditionalConfigs returns the further configs from the context, and an empty map when there are none.
func RetrieveAdditionalConfigs(ctx context.Context) map[string]Config {
	if configs := scopeFrom(ctx).additionalConfigs; configs != nil {
		return configs
	}
	return map[string]Config{}
}
