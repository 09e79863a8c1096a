// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"trueup.dev/graph"
	v1 "trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

type resource = v1.Resource

// silent is a subreconciler of the user that does not describe itself. It watches Nodes.
type silent struct{}

func (silent) SetupWithManager(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
	bldr.Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{})
	return nil
}

func (silent) Reconcile(context.Context, *resource) (reconcilers.Result, error) {
	return reconcilers.Result{}, nil
}

// quota is a subreconciler of the user that describes itself.
type quota struct {
	silent

	nested reconcilers.SubReconciler[*resource]
}

func (q *quota) DescribeTo(n *graph.Node) {
	n.Step("Quota")
	n.ReadsKind(&corev1.ResourceQuota{})
	n.Nest("nested", q.nested)
}

func (q *quota) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	return q.nested.SetupWithManager(ctx, mgr, bldr)
}

func nothing(context.Context, *resource) error { return nil }

func step(name string) *reconcilers.SyncReconciler[*resource] {
	return &reconcilers.SyncReconciler[*resource]{Name: name, Sync: nothing}
}

func child(name, finalizer string) *reconcilers.ChildReconciler[*resource, *corev1.ConfigMap, *corev1.ConfigMapList] {
	c := &reconcilers.ChildReconciler[*resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name:         name,
		DesiredChild: func(context.Context, *resource) (*corev1.ConfigMap, error) { return nil, nil },
		OurChild:     func(*resource, *corev1.ConfigMap) bool { return true },
		ListOptions: func(context.Context, *resource) []client.ListOption {
			return []client.ListOption{client.InNamespace("other")}
		},
		MergeBeforeUpdate:          func(_, _ *corev1.ConfigMap) {},
		ReflectChildStatusOnParent: func(context.Context, *resource, *corev1.ConfigMap, error) {},
		Finalizer:                  finalizer,
	}
	return c
}

func always(context.Context, *resource) bool { return true }

// everyKind returns a tree with each reconciler of package reconcilers.
func everyKind(c reconcilers.Config) *reconcilers.ResourceReconciler[*resource] {
	tracks := step("Tracks")
	tracks.Setup = func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
		bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
		return nil
	}
	again := 0
	return &reconcilers.ResourceReconciler[*resource]{
		Name: "Root", Config: c,
		Setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.Namespace{}, &handler.EnqueueRequestForObject{})
			return nil
		},
		Reconciler: &reconcilers.WithFinalizer[*resource]{
			Finalizer: "test.trueup.dev/one",
			Reconciler: reconcilers.Sequence[*resource]{
				tracks, child("Owned", ""), child("Elsewhere", "test.trueup.dev/2"),
				&reconcilers.IfThen[*resource]{If: always, Then: step("Yes"), Else: silent{}},
				&reconcilers.ForEach[*resource, string]{
					Items:      func(context.Context, *resource) ([]string, error) { return []string{"a", "b"}, nil },
					Reconciler: step("Item"),
				},
				&reconcilers.While[*resource]{
					Condition:  func(context.Context, *resource) bool { again++; return again%2 == 1 },
					Reconciler: step("Round"),
				},
				reconcilers.Always[*resource]{
					&reconcilers.TryCatch[*resource]{Try: step("Do"), Finally: step("Clean")},
					&reconcilers.Advice[*resource]{Reconciler: step("Advised")},
					&reconcilers.OverrideSetup[*resource]{Reconciler: step("NeverSetUp")},
					&reconcilers.CastResource[*resource, client.Object]{
						Reconciler: &reconcilers.SyncReconciler[client.Object]{
							Name: "Any", Sync: func(context.Context, client.Object) error { return nil },
						},
					},
					&reconcilers.SuppressTransientErrors[*resource, *v1.ResourceList]{Reconciler: step("Flaky")},
					&reconcilers.WithConfig[*resource]{
						Name:       "Privileged",
						Config:     func(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) { return c, nil },
						Reconciler: child("Remote", "test.trueup.dev/3"),
					},
					&quota{nested: step("Inner")},
					&reconcilers.Paused[*resource]{Reconciler: &reconcilers.Retry[*resource]{Reconciler: step("Retried")}},
					&reconcilers.Steps[*resource]{
						Finalizer: "test.trueup.dev/steps",
						Steps: []reconcilers.Step[*resource]{
							{Name: "app", DependsOn: []string{"db"}, Reconciler: step("App")}, {Name: "db", Reconciler: step("DB")},
						},
					},
					&reconcilers.Periodic[*resource]{
						Interval: time.Hour,
						Reconciler: &reconcilers.RateLimit[*resource]{
							Interval:   time.Second,
							Reconciler: &reconcilers.Timeout[*resource]{After: time.Minute, Reconciler: step("Limited")},
						},
					},
				},
			},
		},
	}
}

// watcher is a handler of the user.
type watcher struct{}

func (watcher) Add(context.Context, *resource) error           { return nil }
func (watcher) Update(_ context.Context, _, _ *resource) error { return nil }
func (watcher) Delete(context.Context, *resource) error        { return nil }
func (watcher) DescribeTo(n *graph.Node)                       { n.WritesKind(&corev1.Pod{}) }

// otherRoots returns the roots of the event style, an aggregate, and a webhook.
func otherRoots(c reconcilers.Config) []any {
	return []any{
		&operator.Controller[*resource]{
			Name: "Events", Config: c, Handlers: []reconcilers.SubReconciler[*resource]{
				operator.OpinionatedWatcher("test.trueup.dev/watched", watcher{}),
				operator.AsSubReconciler[*resource](operator.AsReconciler(reconcilers.SubReconciler[*resource](step("Tree")))),
				operator.AsSubReconciler[*resource](&operator.TypedReconciler[*resource]{}),
			},
		},
		&reconcilers.AggregateReconciler[*corev1.ConfigMap]{
			Name: "Sum", Config: c, Request: ctrl.Request{},
			MergeBeforeUpdate: func(_, _ *corev1.ConfigMap) {},
		},
		&reconcilers.AdmissionWebhookAdapter[*resource]{Name: "Hook", Reconciler: step("Defaults"), Config: c},
		&reconcilers.ResourceReconciler[*resource]{
			Name: "Set", Config: c, SkipStatusUpdate: true,
			Reconciler: &reconcilers.ChildSetReconciler[*resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
				Finalizer: "test.trueup.dev/set", MergeBeforeUpdate: func(_, _ *corev1.ConfigMap) {},
			},
		},
	}
}
