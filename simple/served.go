// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"trueup.dev/internal/engine/lifecycle"
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

// checkServed returns the problems of the kinds, and an error if the request to the API server failed.
func (a *App) checkServed() (problems, error) {
	p := problems{}
	for i := range a.config.ManagedKinds {
		if err := a.checkKind(&p, fmt.Sprintf("ManagedKinds[%d].Kind", i), a.config.ManagedKinds[i].Kind); err != nil {
			return nil, err
		}
	}
	for i := range a.config.UnmanagedKinds {
		if err := a.checkKind(&p, fmt.Sprintf("UnmanagedKinds[%d].Kind", i), a.config.UnmanagedKinds[i].Kind); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// checkKind returns an error if the request to the API server failed.
func (a *App) checkKind(p *problems, field string, kind resource.Kind) error {
	name := kind.GroupKind().String() + "/" + kind.Version()
	mapping, err := a.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version())
	switch {
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
