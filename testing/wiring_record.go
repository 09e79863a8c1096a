// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/fakeapi"
	"trueup.dev/testing/internal/wiring"
)

// setUpFunc sets up a reconciler that uses the config.
type setUpFunc = func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error

// recordWiring calls setUp with a manager that records, and returns what it has asked for. The error lists all
// problems.
func recordWiring(
	ctx context.Context, scheme *runtime.Scheme, setUp setUpFunc, given ...client.Object,
) (*Wiring, error) {
	if scheme == nil {
		return nil, errors.New("a scheme is required")
	}
	stored, err := copyForWiring(scheme, given)
	if err != nil {
		return nil, err
	}
	observed, err := wiring.Observe(ctx, scheme, stored, setUp)
	if err != nil {
		return nil, err
	}
	recorded := each(observed.Controllers, wiringOf)
	first := &recorded[0]
	if len(recorded) > 1 {
		first.Others = recorded[1:]
	}
	if len(observed.Indexes) > 0 {
		first.Indexes = each(observed.Indexes, func(i wiring.Index) Index { return Index(i) })
	}
	return first, nil
}

// copyForWiring returns the given objects as the API stores them.
func copyForWiring(scheme *runtime.Scheme, given []client.Object) ([]client.Object, error) {
	var stored []client.Object
	problems := []error{}
	for i, obj := range given {
		obj, err := givenObject(obj, scheme)
		if err != nil {
			problems = append(problems, fmt.Errorf("given[%d]: %w", i, err))
			continue
		}
		stored = append(stored, obj)
	}
	return stored, errors.Join(append(problems, prefixed("given", fakeapi.ValidateGiven(stored, scheme))...)...)
}

// wiringOf returns what a controller has asked for, without indexes, which belong to no controller.
func wiringOf(c wiring.Controller) Wiring {
	return Wiring{
		Controller: c.Name, For: watchesFrom(c.For), Owns: watchesFrom(c.Owns), Tracks: watchesFrom(c.Tracks),
		Watches: watchesFrom(c.Watches), AtStart: c.AtStart,
		Options: optionsFrom(c.Options).withoutDefaults(), notes: c.Notes,
	}
}

// watchesFrom converts watches. It returns nil for none, so that the printed wiring has no empty fields.
func watchesFrom(observed []wiring.Watch) []Watch {
	var watches []Watch
	for _, w := range observed {
		watch := Watch{Object: w.Object, Cluster: w.Cluster}
		for _, change := range w.Ignores {
			watch.Ignores = append(watch.Ignores, Change(change))
		}
		watches = append(watches, watch)
	}
	return watches
}

func optionsFrom(o controller.Options) ControllerOptions {
	return ControllerOptions{
		MaxConcurrentReconciles: o.MaxConcurrentReconciles, CacheSyncTimeout: o.CacheSyncTimeout,
		ReconciliationTimeout: o.ReconciliationTimeout, RecoverPanic: o.RecoverPanic,
		NeedLeaderElection: o.NeedLeaderElection, EnableWarmup: o.EnableWarmup,
	}
}
