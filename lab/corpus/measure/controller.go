// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
)

// ByController returns the same scenario with Setup instead of New: a controller calls the reconciler.
func ByController(s converge.Scenario) converge.Scenario {
	if s.Setup != nil {
		return s
	}
	direct := s
	s.New, s.Owns, s.Watches, s.Indexes = nil, nil, nil, nil
	s.Setup = func(mgr manager.Manager) error {
		if direct.Indexes != nil {
			if err := direct.Indexes(mgr.GetFieldIndexer()); err != nil {
				return err
			}
		}
		env := converge.EnvOf(mgr)
		b := builder.ControllerManagedBy(mgr).For(direct.For)
		for _, owned := range direct.Owns {
			b.Owns(owned)
		}
		for _, watch := range direct.Watches {
			requests := watch.Requests
			if requests == nil {
				requests = watch.NewRequests(env)
			}
			b.Watches(watch.Object, handler.EnqueueRequestsFromMapFunc(requests))
		}
		return b.Complete(direct.New(env))
	}
	return s
}
