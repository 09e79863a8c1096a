// SPDX-License-Identifier: Apache-2.0

package recordings

import (
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

// Observed returns the same scenario with Setup instead of New: an observed controller calls the reconciler. added gets
// the recorder of each process, and listeners get the events of all. It reports false for reconcilers that register
// themselves, because their controllers are not observed.
func Observed(
	s converge.Scenario, added func(*recorder.Recorder), listeners ...observe.Listener,
) (converge.Scenario, bool) {
	if s.New == nil {
		return s, false
	}
	direct := s
	s.New, s.Owns, s.Watches, s.Indexes = nil, nil, nil, nil
	s.Setup = func(mgr manager.Manager) error {
		r := recorder.New(recorder.Options{Objects: true}) // what it has ends with the process
		observe.Of(mgr).Add(r)
		added(r)
		for _, listener := range listeners {
			observe.Of(mgr).Add(listener)
		}
		return SetUp(mgr, direct, converge.EnvOf(mgr), controller.Options{})
	}
	return s, true
}

// SetUp adds an observed controller with the reconciler of a scenario to a manager.
func SetUp(mgr manager.Manager, s converge.Scenario, env converge.Env, options controller.Options) error {
	if s.Indexes != nil {
		if err := s.Indexes(mgr.GetFieldIndexer()); err != nil {
			return err
		}
	}
	env.Client, env.APIReader = observe.Client(mgr), observe.NewReader(env.APIReader, env.Client, observe.Of(mgr))
	b := builder.ControllerManagedBy(mgr).For(s.For).WithOptions(options)
	for _, owned := range s.Owns {
		b.Owns(owned)
	}
	for _, watch := range s.Watches {
		requests := watch.Requests
		if requests == nil {
			requests = watch.NewRequests(env)
		}
		b.Watches(watch.Object, handler.EnqueueRequestsFromMapFunc(requests))
	}
	return observe.Controller(b).Complete(s.New(env))
}
