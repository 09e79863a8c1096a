// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// The child of one controller is the resource of another controller, which adds a finalizer to it.
func TestTwoControllers(t *testing.T) {
	s := under(t, nil)
	s.Setup = func(mgr ctrl.Manager) error {
		env := converge.EnvOf(mgr)
		upper := &reconcilers.ResourceReconciler[*fixture.Resource]{
			Reconciler: newChild(fixedName), Config: reconcilers.NewConfig(mgr, nil, time.Hour),
		}
		lower := &reconcilers.ResourceReconciler[*corev1.ConfigMap]{
			Reconciler: &reconcilers.WithFinalizer[*corev1.ConfigMap]{
				Finalizer: finalizer,
				Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{
					Sync: func(ctx context.Context, resource *corev1.ConfigMap) error {
						return put(ctx, env, "thing", resource.Data["value"])
					},
					Finalize: func(ctx context.Context, _ *corev1.ConfigMap) error { return drop(ctx, env, "thing") },
				},
			},
			Config: reconcilers.NewConfig(mgr, nil, time.Hour),
		}
		return errors.Join(upper.SetupWithManager(t.Context(), mgr), lower.SetupWithManager(t.Context(), mgr))
	}
	prove(t, s)
}

func inNamed(_ context.Context, space *corev1.Namespace) []client.ListOption {
	return []client.ListOption{client.InNamespace(space.Name)}
}

// The child of a cluster-scoped resource is in the namespace that the resource is.
func TestNamespaces(t *testing.T) {
	space := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "space", Labels: map[string]string{"managed": "yes", "value": "one"}},
	}
	prove(t, converge.Scenario{
		Scheme: scheme,
		For:    &corev1.Namespace{},
		Setup: func(mgr ctrl.Manager) error {
			root := &reconcilers.ResourceReconciler[*corev1.Namespace]{
				SkipStatusUpdate: true,
				SkipResource:     func(_ context.Context, space *corev1.Namespace) bool { return space.Labels["managed"] == "" },
				Reconciler: &reconcilers.ChildReconciler[*corev1.Namespace, *corev1.ConfigMap, *corev1.ConfigMapList]{
					DesiredChild: func(_ context.Context, space *corev1.Namespace) (*corev1.ConfigMap, error) {
						return &corev1.ConfigMap{
							ObjectMeta: metav1.ObjectMeta{Namespace: space.Name, Name: "child"},
							Data:       map[string]string{"value": space.Labels["value"]},
						}, nil
					},
					ReflectChildStatusOnParentWithError: func(
						_ context.Context, _ *corev1.Namespace, _ *corev1.ConfigMap, err error,
					) error {
						return err
					},
					MergeBeforeUpdate: mergeConfigMap,
					ListOptions:       inNamed,
				},
				Config: reconcilers.NewConfig(mgr, nil, time.Hour),
			}
			return root.SetupWithManager(t.Context(), mgr)
		},
		Steps: converge.Lifecycle(space, func(space *corev1.Namespace) { space.Labels["value"] = "two" }),
	})
}

// A predicate that accepts only new generations is enough for a resource with a finalizer and a child.
func TestGenerationChangedPredicate(t *testing.T) {
	s := under(t, nil)
	s.Setup = func(mgr ctrl.Manager) error {
		root := &reconcilers.ResourceReconciler[*fixture.Resource]{
			SetupForOptions: []builder.ForOption{builder.WithPredicates(predicate.GenerationChangedPredicate{})},
			Reconciler: protected(reconcilers.Sequence[*fixture.Resource]{
				newChild(generatedName), publishes(converge.EnvOf(mgr), "thing"),
			}),
			Config: reconcilers.NewConfig(mgr, nil, time.Hour),
		}
		return root.SetupWithManager(t.Context(), mgr)
	}
	s.Steps = append(s.Steps, again(newResource("three"), newResource("four"))...)
	prove(t, s)
}

// The aggregate exists only while objects to aggregate exist.
func TestAggregateReconciler_comesAndGoes(t *testing.T) {
	resource := newResource("one")
	prove(t, converge.Scenario{
		Scheme: scheme,
		For:    &corev1.ConfigMap{},
		Setup: func(mgr ctrl.Manager) error {
			root := &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
				Request: reconcilers.Request{
					NamespacedName: types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "aggregate"},
				},
				Setup: watchTracked(&fixture.Resource{}),
				Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{
					Sync: func(ctx context.Context, aggregate *corev1.ConfigMap) error {
						var list fixture.ResourceList
						if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, &list); err != nil {
							return err
						}
						aggregate.Data = map[string]string{}
						for _, item := range list.Items {
							aggregate.Data[item.Name] = item.Spec.Fields["value"]
						}
						return nil
					},
				},
				DesiredResource: func(_ context.Context, aggregate *corev1.ConfigMap) (*corev1.ConfigMap, error) {
					if len(aggregate.Data) == 0 {
						return nil, nil
					}
					return aggregate, nil
				},
				MergeBeforeUpdate: mergeConfigMap,
				Config:            reconcilers.NewConfig(mgr, nil, time.Hour),
			}
			return root.SetupWithManager(t.Context(), mgr)
		},
		Steps: append(again(resource, newResource("two")), converge.Lifecycle(resource, setField("value", "three"))...),
	})
}
