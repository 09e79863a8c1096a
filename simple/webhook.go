// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/app"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/operator"
)

// Validate calls the Validator of the kind. The validating webhook calls it.
func (a *App) Validate(ctx context.Context, req *app.AdmissionRequest) error {
	managed, ok := a.managed(req.GroupVersionKind())
	if !ok || managed.Validator == nil {
		return fmt.Errorf("validation of %s: %w", req.GroupVersionKind(), app.ErrNotImplemented)
	}
	return managed.Validator.Validate(ctx, req)
}

// Mutate calls the Mutator of the kind. The mutating webhook calls it. The response has an UpdatedObject, unless the
// request has no object.
func (a *App) Mutate(ctx context.Context, req *app.AdmissionRequest) (*app.MutatingResponse, error) {
	managed, ok := a.managed(req.GroupVersionKind())
	if !ok || managed.Mutator == nil {
		return nil, fmt.Errorf("mutation of %s: %w", req.GroupVersionKind(), app.ErrNotImplemented)
	}
	response, err := managed.Mutator.Mutate(ctx, req)
	switch {
	case err != nil:
		return nil, err
	case response == nil || nilcheck.IsNil(response.UpdatedObject):
		return &app.MutatingResponse{UpdatedObject: req.Object}, nil
	case req.Object != nil && reflect.TypeOf(response.UpdatedObject) != reflect.TypeOf(req.Object):
		return nil, fmt.Errorf("the mutator returned a %T, must be a %T", response.UpdatedObject, req.Object)
	}
	return response, nil
}

// ServeWebhooksOf sets the app that answers requests to this app's webhooks: usually an app that embeds this one and
// overrides methods. If outer is nil, this app serves no webhooks, because another server does. An operator.Runner
// calls ServeWebhooksOf. It must be called before Run.
func (a *App) ServeWebhooksOf(outer app.App) {
	if outer == nil {
		a.webhooks.elsewhere.Store(true)
		return
	}
	a.serving.Store(&outer)
}

// servingApp is the app that answers the API server.
type servingApp struct{ *App }

func (a servingApp) Validate(ctx context.Context, req *app.AdmissionRequest) error {
	return (*a.serving.Load()).Validate(ctx, req)
}

func (a servingApp) Mutate(ctx context.Context, req *app.AdmissionRequest) (*app.MutatingResponse, error) {
	return (*a.serving.Load()).Mutate(ctx, req)
}

func (a servingApp) Convert(ctx context.Context, req app.ConversionRequest) (*app.RawObject, error) {
	return (*a.serving.Load()).Convert(ctx, req)
}

func (a servingApp) CallCustomRoute(
	ctx context.Context, response app.CustomRouteResponseWriter, req *app.CustomRouteRequest,
) error {
	if outer, ok := (*a.serving.Load()).(app.CustomRouter); ok {
		return outer.CallCustomRoute(ctx, response, req)
	}
	return a.App.CallCustomRoute(ctx, response, req)
}

// serveWebhooks registers the webhooks and the custom routes. It starts no server if the app has neither, because a
// server needs certificates.
func (a *App) serveWebhooks() error {
	self := app.App(a)
	a.serving.Store(&self)
	hooks := &operator.AppWebhooks{
		App:       servingApp{a},
		Name:      a.config.Name,
		Mutated:   slices.Concat(a.kindsWith(hasMutator)...),
		Validated: slices.Concat(a.kindsWith(hasValidator)...),
		Converted: len(a.config.Converters) > 0,
		Config:    a.base,
		Logger:    a.log,
	}
	handlers := hooks.Handlers()
	if a.HasCustomRoutes() {
		routes, err := operator.AppRoutes{
			App: servingApp{a}, Name: a.config.Name, Kinds: a.ManagedKinds(), KubeConfig: a.mgr.GetConfig(), Logger: a.log,
		}.Handler()
		if err != nil {
			return err
		}
		handlers[operator.CustomRoutesPath] = routes
	}
	if len(handlers) == 0 {
		return nil
	}
	a.handlers = handlers
	server := a.mgr.GetWebhookServer()
	for path, handler := range handlers {
		server.Register(path, handler)
	}
	return a.mgr.AddReadyzCheck("webhooks", server.StartedChecker())
}

// webhookServer is a server that does nothing if another server serves the webhooks.
type webhookServer struct {
	webhook.Server
	elsewhere atomic.Bool
}

func (s *webhookServer) Start(ctx context.Context) error {
	if s.elsewhere.Load() {
		<-ctx.Done()
		return nil
	}
	err := s.Server.Start(ctx)
	if missing := (*fs.PathError)(nil); errors.As(err, &missing) && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(
			"the webhook server has no certificate in %s: set Webhooks.CertDir to the directory that has it and its key; in a "+
				"cluster, cert-manager creates a Secret to mount there, and for trueup up you create the files, see "+
				"docs/webhooks.md: %w", filepath.Dir(missing.Path), err,
		)
	}
	return err
}

func (s *webhookServer) StartedChecker() healthz.Checker {
	if started := s.Server.StartedChecker(); !s.elsewhere.Load() {
		return started
	}
	return healthz.Ping
}
