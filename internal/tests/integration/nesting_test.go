// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// sub is a subreconciler of Resources.
type sub = reconcilers.SubReconciler[*fixture.Resource]

// around contains every reconciler that nests others, around a given one.
var around = map[string]func(nested sub) sub{
	"sequence": func(nested sub) sub { return reconcilers.Sequence[*fixture.Resource]{nested} },
	"always":   func(nested sub) sub { return reconcilers.Always[*fixture.Resource]{nested} },
	"advice":   func(nested sub) sub { return &reconcilers.Advice[*fixture.Resource]{Reconciler: nested} },
	"then": func(nested sub) sub {
		return &reconcilers.IfThen[*fixture.Resource]{
			If: func(context.Context, *fixture.Resource) bool { return true }, Then: nested,
		}
	},
	"else": func(nested sub) sub {
		return &reconcilers.IfThen[*fixture.Resource]{
			If: func(
				context.Context, *fixture.Resource,
			) bool {
				return false
			}, Then: reconcilers.Sequence[*fixture.Resource]{}, Else: nested,
		}
	},
	"while": func(nested sub) sub {
		return &reconcilers.While[*fixture.Resource]{
			Condition:  func(ctx context.Context, _ *fixture.Resource) bool { return reconcilers.RetrieveIteration(ctx) < 2 },
			Reconciler: nested,
		}
	},
	"foreach": func(nested sub) sub {
		return &reconcilers.ForEach[*fixture.Resource, string]{
			Items:      func(context.Context, *fixture.Resource) ([]string, error) { return []string{"once", "twice"}, nil },
			Reconciler: nested,
		}
	},
	"try": func(nested sub) sub { return &reconcilers.TryCatch[*fixture.Resource]{Try: nested} },
	"finally": func(nested sub) sub {
		return &reconcilers.TryCatch[*fixture.Resource]{Try: reconcilers.Sequence[*fixture.Resource]{}, Finally: nested}
	},
	"steps": func(nested sub) sub {
		first := &reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(context.Context, *fixture.Resource) error { return nil },
		}
		return &reconcilers.Steps[*fixture.Resource]{Steps: []reconcilers.Step[*fixture.Resource]{
			{Name: "nested", DependsOn: []string{"first"}, Reconciler: nested}, {Name: "first", Reconciler: first},
		}}
	},
	"suppress": func(nested sub) sub {
		return &reconcilers.SuppressTransientErrors[*fixture.Resource, *fixture.ResourceList]{Reconciler: nested}
	},
	"config": func(nested sub) sub {
		return &reconcilers.WithConfig[*fixture.Resource]{
			Config:     func(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) { return c, nil },
			Reconciler: nested,
		}
	},
	"finalizer": func(nested sub) sub {
		return &reconcilers.WithFinalizer[*fixture.Resource]{Finalizer: finalizer, Reconciler: nested}
	},
	"cast": func(nested sub) sub {
		return &reconcilers.CastResource[*fixture.Resource, client.Object]{
			Reconciler: &reconcilers.CastResource[client.Object, *fixture.Resource]{Reconciler: nested},
		}
	},
	"setup": func(nested sub) sub {
		return &reconcilers.OverrideSetup[*fixture.Resource]{
			Setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.Owns(&corev1.ConfigMap{})
				return nil
			},
			Reconciler: nested,
		}
	},
}

// A change of a child triggers its parent, wherever the child is in the tree. Nothing else does: no status is written.
func TestWatchesAreSetUpBelowEveryReconciler(t *testing.T) {
	e := newEnv(t)
	value := map[string]string{"value": "right"}
	setups := []setup{}
	for name, wrap := range around {
		child := configMapOf("-"+name, func(*fixture.Resource) map[string]string { return value })
		setups = append(setups, func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
			return (&reconcilers.ResourceReconciler[*fixture.Resource]{
				Name: name, SkipStatusUpdate: true, Reconciler: wrap(child), Config: c,
			}).SetupWithManager(ctx, mgr)
		})
	}
	e.start(setups...)
	e.Add(newResource("it", nil))
	for name := range around {
		until(e, newConfigMap("it-"+name, nil), dataIs(value))
	}
	for name := range around {
		child := newConfigMap("it-"+name, nil)
		change(e, child, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"value": "wrong"} })
		until(e, child, dataIs(value))
	}
}
