// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"trueup.dev/internal/engine/lifecycle"
	"trueup.dev/observe"
	"trueup.dev/resource"
)

// waitUntilServed waits for the API server, and compares all kinds with the kinds that it serves. With a wrong plural
// the API server would not call the webhooks, and with a wrong scope namespaces would be ignored.
func (a *App) waitUntilServed(ctx context.Context) error {
	var found problems
	err := lifecycle.Retry(ctx, func(context.Context) (err error) {
		found, err = a.checkServed()
		return err
	}, func(err error, failures int) bool {
		if failures == 1 {
			a.log.Info("unable to discover the kinds of the app, retrying", "reason", err.Error())
		}
		return true
	})
	return errors.Join(err, errors.Join(found...))
}

// kindOfApp is a kind in the config of an app.
type kindOfApp struct {
	field string
	kind  resource.Kind
	// whileServed reports whether the app runs without the kind.
	whileServed bool
}

func (a *App) kinds() []kindOfApp {
	var kinds []kindOfApp
	for i, k := range a.config.ManagedKinds {
		field := fmt.Sprintf("ManagedKinds[%d].Kind", i)
		kinds = append(kinds, kindOfApp{field, k.Kind, k.ReconcileOptions.WhileServed})
	}
	for i, k := range a.config.UnmanagedKinds {
		field := fmt.Sprintf("UnmanagedKinds[%d].Kind", i)
		kinds = append(kinds, kindOfApp{field, k.Kind, k.ReconcileOptions.WhileServed})
	}
	return kinds
}

// checkServed returns the problems of the kinds, and an error if the request to the API server failed.
func (a *App) checkServed() (problems, error) {
	p := problems{}
	for _, kind := range a.kinds() {
		if err := a.checkKind(&p, kind); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// checkWhenServed logs the problems of kinds that the API server serves later, each time that it does.
func (a *App) checkWhenServed() {
	if !slices.ContainsFunc(a.kinds(), func(k kindOfApp) bool { return k.whileServed }) {
		return
	}
	observe.Of(a.mgr).Add(observe.Func(func(_ context.Context, event observe.Event) {
		e, ok := event.(*observe.KindServed)
		if !ok || !e.Served {
			return
		}
		p := problems{}
		for _, kind := range a.kinds() {
			if kind.whileServed && kind.kind.GroupVersionKind() == e.Kind {
				_ = a.checkKind(&p, kind) // the kind was just discovered
			}
		}
		if err := errors.Join(p...); err != nil {
			a.log.Error(err, "the API server serves a kind that differs from the kind of the app")
		}
	}))
}

// checkKind returns an error if the request to the API server failed.
func (a *App) checkKind(p *problems, of kindOfApp) error {
	field, kind := of.field, of.kind
	name := kind.GroupKind().String() + "/" + kind.Version()
	mapping, err := a.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version())
	switch {
	case meta.IsNoMatchError(err) && of.whileServed:
		return nil
	case meta.IsNoMatchError(err):
		p.add("%s: the API server does not serve %s; is its CustomResourceDefinition installed?", field, name)
		return nil
	case err != nil:
		return fmt.Errorf("discover the kinds of the API server at %s: %w", a.config.KubeConfig.Host, err)
	}
	if served := mapping.Resource.Resource; served != kind.Plural() {
		p.add("%s: Plural is %q, but the API server serves %s as %q", field, kind.Plural(), name, served)
	}
	scope := resource.ClusterScope
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		scope = resource.NamespacedScope
	}
	if scope != kind.Scope() {
		p.add("%s: Scope is %q, but the API server serves %s with scope %q", field, kind.Scope(), name, scope)
	}
	return nil
}
