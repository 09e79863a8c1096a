// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/guard"
)

// scope is the context value that a root reconciler sets. One context value holds all fields. The Stash… functions put
// a changed copy on a derived context, so that the caller's context does not change.
type scope struct {
	request              Request
	config               *Config
	originalConfig       *Config
	resourceType         client.Object
	originalResourceType client.Object
	// single reports whether the root reconciles only the resource of its request.
	single bool
	// controller is the name of the root reconciler, or "".
	controller string
	// uid is the UID of the reconciled resource. It is "" until the UID is known.
	uid               types.UID
	additionalConfigs map[string]Config
	// requestErr is the Err method of the context that the root reconciler was called with.
	requestErr func() error
	// journal records the writes of the request. It is nil outside of controllers.
	journal *guard.Journal
	// reflected records the errors that the request reflects. It is nil outside of root reconcilers.
	reflected *reflected
	// watched holds the kinds that the controller watches. It is nil outside of root reconcilers with a controller.
	watched *watched
	// waits records what the request waits for. It is nil outside of requests of root reconcilers.
	waits *waits
	// applies records what the request applies. It is nil outside of requests of root reconcilers.
	applies *applies
	// stored has what depends on whether the status is stored. It is nil if nothing stores the status.
	stored *onStored
	// inventory has the children of the enclosing [Prune]. It is nil without one.
	inventory *inventory
	// stepRun is the run of the innermost step of [Steps]. It is nil outside of Steps.
	stepRun *stepRun
	// held is set if the innermost [WithFinalizer] must keep its finalizer. It is nil unless one may be removed.
	held *atomic.Bool
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

// ontoRoot puts the scope on the context of a root reconciler's caller. It keeps the additional configs of the caller.
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

// RetrieveRequest returns the reconcile request from the context, or a zero request if the context has none.
func RetrieveRequest(ctx context.Context) Request {
	return scopeFrom(ctx).request
}

// StashConfig puts the current config on the context. Sub reconcilers use it for everything except the reconciled
// resource.
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

// RetrieveConfig returns the current config from the context. It returns an error if the context does not come from a
// root reconciler or [StashConfig].
func RetrieveConfig(ctx context.Context) (Config, error) {
	if config := scopeFrom(ctx).config; config != nil {
		return *config, nil
	}
	return Config{}, errMissingConfig
}

// RetrieveConfigOrDie is like [RetrieveConfig] but panics on an error.
func RetrieveConfigOrDie(ctx context.Context) Config {
	return orDie(RetrieveConfig(ctx))
}

// StashOriginalConfig puts the config that loaded the reconciled resource on the context. Reconcilers that change the
// current config do not change it.
func StashOriginalConfig(ctx context.Context, resourceConfig Config) context.Context {
	s := scopeFrom(ctx)
	s.originalConfig = &resourceConfig
	return s.onto(ctx)
}

// RetrieveOriginalConfig returns the config that loaded the reconciled resource. It returns an error if the context
// does not come from a root reconciler or [StashOriginalConfig].
func RetrieveOriginalConfig(ctx context.Context) (Config, error) {
	if config := scopeFrom(ctx).originalConfig; config != nil {
		return *config, nil
	}
	return Config{}, errMissingOriginalConfig
}

// RetrieveOriginalConfigOrDie is like [RetrieveOriginalConfig] but panics on an error.
func RetrieveOriginalConfigOrDie(ctx context.Context) Config {
	return orDie(RetrieveOriginalConfig(ctx))
}

func orDie(config Config, err error) Config {
	if err != nil {
		panic(err)
	}
	return config
}

// StashResourceType puts the current type of the resource on the context. It differs from the original type below a
// [CastResource].
func StashResourceType(ctx context.Context, currentType client.Object) context.Context {
	s := scopeFrom(ctx)
	s.resourceType = currentType
	return s.onto(ctx)
}

// RetrieveResourceType returns the current type of the resource, or nil if the context has none.
func RetrieveResourceType(ctx context.Context) client.Object {
	return scopeFrom(ctx).resourceType
}

// StashOriginalResourceType puts the type with which the resource was loaded on the context.
func StashOriginalResourceType(ctx context.Context, resourceType client.Object) context.Context {
	s := scopeFrom(ctx)
	s.originalResourceType = resourceType
	return s.onto(ctx)
}

// RetrieveOriginalResourceType returns the type with which the resource was loaded, or nil if the context has none.
func RetrieveOriginalResourceType(ctx context.Context) client.Object {
	return scopeFrom(ctx).originalResourceType
}

// StashAdditionalConfigs puts additional configs, by name, on the context. They are intended for tests of reconcilers
// that use several configs.
func StashAdditionalConfigs(ctx context.Context, additionalConfigs map[string]Config) context.Context {
	s := scopeFrom(ctx)
	s.additionalConfigs = additionalConfigs
	return s.onto(ctx)
}

// RetrieveAdditionalConfigs returns the additional configs from the context, or an empty map if the context has none.
func RetrieveAdditionalConfigs(ctx context.Context) map[string]Config {
	if configs := scopeFrom(ctx).additionalConfigs; configs != nil {
		return configs
	}
	return map[string]Config{}
}
