// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"trueup.dev/resource"
)

// checkServed compares all kinds with what the API server serves. A wrong plural would have it never ask for admission, and a wrong scope have namespaces
// ignored.
func (a *App) checkServed() error {
	p := problems{}
	for i := range a.config.ManagedKinds {
		if err := a.checkKind(&p, fmt.Sprintf("ManagedKinds[%d].Kind", i), a.config.ManagedKinds[i].Kind); err != nil {
			return err
		}
	}
	for i := range a.config.UnmanagedKinds {
		if err := a.checkKind(&p, fmt.Sprintf("UnmanagedKinds[%d].Kind", i), a.config.UnmanagedKinds[i].Kind); err != nil {
			return err
		}
	}
	return errors.Join(p...)
}

// checkKind returns an error when the API server could not be asked.
func (a *App) checkKind(p *problems, field string, kind resource.Kind) error {
	name := kind.GroupKind().String() + "/" + kind.Version()
	mapping, err := a.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version())
	switch {
	case meta.IsNoMatchError(err):
		p.add("%s: the API server does not serve %s; is its CustomResourceDefinition installed?", field, name)
		return nil
	case err != nil:
		return fmt.Errorf("the API server at %s cannot be asked what it serves: %w", a.config.KubeConfig.Host, err)
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
