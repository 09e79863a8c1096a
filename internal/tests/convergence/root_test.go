// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestSyncReconciler(t *testing.T) {
	converge.Run(t, under(t, func(converge.Env) sub {
		return &reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(ctx context.Context, resource *fixture.Resource) error {
				report(resource, "seen", resource.Spec.Fields["value"])
				resource.Status.MarkReady(ctx)
				return nil
			},
		}
	}))
}

func TestWithFinalizer(t *testing.T) {
	s := under(t, func(env converge.Env) sub {
		return &reconcilers.WithFinalizer[*fixture.Resource]{Finalizer: finalizer, Reconciler: publishes(env, "thing")}
	})
	s.Steps = append(s.Steps, again(newResource("three"), newResource("four"))...)
	prove(t, s)
}

// The thing is deleted some time after the request to delete it.
func TestWithFinalizer_notReadyToClear(t *testing.T) {
	prove(t, under(t, func(env converge.Env) sub {
		gone := reconcilers.NewStasher[bool]("gone")
		return &reconcilers.WithFinalizer[*fixture.Resource]{
			Finalizer: finalizer,
			Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
				Sync: func(ctx context.Context, resource *fixture.Resource) error {
					return put(ctx, env, "thing", resource.Spec.Fields["value"])
				},
				FinalizeWithResult: func(ctx context.Context, resource *fixture.Resource) (reconcilers.Result, error) {
					if left := time.Until(resource.DeletionTimestamp.Add(10 * time.Second)); left > 0 {
						return reconcilers.Result{RequeueAfter: left}, nil
					}
					gone.Store(ctx, true)
					return reconcilers.Result{}, drop(ctx, env, "thing")
				},
			},
			ReadyToClearFinalizer: func(ctx context.Context, _ *fixture.Resource) bool { return gone.RetrieveOrEmpty(ctx) },
		}
	}))
}

// The aggregate lists the existing resources.
func TestAggregateReconciler(t *testing.T) {
	request := reconcilers.Request{
		NamespacedName: types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "aggregate"},
	}
	a, b := newResource("one"), newResource("two")
	b.Name = "b"
	prove(t, converge.Scenario{
		Scheme: scheme,
		For:    &corev1.ConfigMap{},
		Setup: func(mgr ctrl.Manager) error {
			config := reconcilers.NewConfig(mgr, nil, time.Hour)
			root := &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
				Request: request,
				Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
					bldr.Watches(&fixture.Resource{}, reconcilers.EnqueueTracked(ctx))
					return nil
				},
				Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{
					Sync: func(ctx context.Context, resource *corev1.ConfigMap) error {
						var list fixture.ResourceList
						if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, &list); err != nil {
							return err
						}
						resource.Data = map[string]string{}
						for _, item := range list.Items {
							resource.Data[item.Name] = item.Spec.Fields["value"]
						}
						return nil
					},
				},
				MergeBeforeUpdate: mergeConfigMap,
				Config:            config,
			}
			return root.SetupWithManager(t.Context(), mgr)
		},
		Steps: converge.Steps(
			converge.Settle(), converge.Apply(a), converge.Apply(b), converge.Settle(),
			converge.Change(a, setField("value", "three")), converge.Settle(), converge.Delete(b), converge.Settle(),
		),
	})
}
