// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// Two controllers for one kind in one manager, each with a child of the same kind.
func TestTwoControllersForOneKind(t *testing.T) {
	e := newEnv(t)
	named := func(name string, skipStatus bool) setup {
		return func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
			return (&reconcilers.ResourceReconciler[*fixture.Resource]{
				Name: name + "Of" + e.Namespace, // names must be unique in this process: this test checks that
				Setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
					bldr.WithOptions(controller.Options{SkipNameValidation: new(false)})
					return nil
				},
				SkipStatusUpdate: skipStatus,
				Reconciler: configMapOf("-"+name, func(parent *fixture.Resource) map[string]string {
					return map[string]string{"value": parent.Spec.Fields["value"]}
				}),
				Config: c,
			}).SetupWithManager(ctx, mgr)
		}
	}
	e.start(named("first", false), named("second", true))
	resource := newResource("it", map[string]string{"value": "1"})
	e.Add(resource)
	for _, value := range []string{"1", "2"} {
		change(e, resource, func(r *fixture.Resource) { r.Spec.Fields["value"] = value })
		for _, name := range []string{"it-first", "it-second"} {
			child := newConfigMap(name, nil)
			until(e, child, dataIs(map[string]string{"value": value}))
			change(e, child, func(cm *corev1.ConfigMap) { cm.Data = nil })
			until(e, child, dataIs(map[string]string{"value": value}))
		}
	}
	until(e, resource, func(r *fixture.Resource) error {
		if r.Status.ObservedGeneration != r.Generation {
			return fmt.Errorf("observed generation = %d of %d", r.Status.ObservedGeneration, r.Generation)
		}
		return nil
	})
}
