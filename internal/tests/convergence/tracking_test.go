// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// config is a ConfigMap of another client.
func config(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{"config": "true"},
		},
		Data: map[string]string{"value": value},
	}
}

// aroundConfigs are steps in which a resource exists all the time, and the objects it tracks are created, changed and
// deleted.
func aroundConfigs() []converge.Step {
	resource, first, second := newResource("one"), config("config", "red"), config("other", "blue")
	return converge.Steps(
		converge.Apply(resource), converge.Settle(), converge.Apply(first), converge.Settle(),
		converge.Change(first, func(c *corev1.ConfigMap) { c.Data = map[string]string{"value": "green"} }), converge.Settle(),
		converge.Apply(second), converge.Settle(), converge.Delete(first), converge.Settle(),
		converge.Delete(resource), converge.Settle(),
	)
}

func watchTracked(obj client.Object) func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
		bldr.Watches(obj, reconcilers.EnqueueTracked(ctx))
		return nil
	}
}

func TestTrackAndGet(t *testing.T) {
	s := under(t, func(converge.Env) sub {
		return &reconcilers.SyncReconciler[*fixture.Resource]{
			Setup: watchTracked(&corev1.ConfigMap{}),
			Sync: func(ctx context.Context, resource *fixture.Resource) error {
				found := &corev1.ConfigMap{}
				err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(
					ctx, types.NamespacedName{Namespace: resource.Namespace, Name: "config"}, found,
				)
				if err != nil && !apierrs.IsNotFound(err) {
					return err
				}
				report(resource, "config", found.Data["value"])
				return nil
			},
		}
	})
	s.Steps = aroundConfigs()
	prove(t, s)
}

// The content of tracked objects is written to a child. A wait for the child's cache must not lose a change of a
// tracked object.
func TestTrackAndList(t *testing.T) {
	s := under(t, func(converge.Env) sub {
		found := reconcilers.NewStasher[map[string]string]("found")
		inner := newChild(fixedName)
		inner.DesiredChild = func(ctx context.Context, resource *fixture.Resource) (*corev1.ConfigMap, error) {
			desired := configMap(resource, "child")
			desired.Data = reconcilers.MergeMaps(desired.Data, found.RetrieveOrEmpty(ctx))
			return desired, nil
		}
		return reconcilers.Sequence[*fixture.Resource]{
			&reconcilers.SyncReconciler[*fixture.Resource]{
				Setup: watchTracked(&corev1.ConfigMap{}),
				Sync: func(ctx context.Context, resource *fixture.Resource) error {
					var list corev1.ConfigMapList
					err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, &list,
						client.InNamespace(resource.Namespace), client.MatchingLabels{"config": "true"})
					if err != nil {
						return err
					}
					all := map[string]string{}
					for _, item := range list.Items {
						all["of-"+item.Name] = item.Data["value"]
					}
					found.Store(ctx, all)
					return nil
				},
			},
			inner,
		}
	})
	s.Steps = aroundConfigs()
	prove(t, s)
}

// A part of the tree reads the resource as a type with only some of its fields.
func TestCastResource(t *testing.T) {
	s := under(t, func(env converge.Env) sub {
		return &reconcilers.WithFinalizer[*fixture.Resource]{
			Finalizer: finalizer,
			Reconciler: &reconcilers.CastResource[*fixture.Resource, *fixture.Duck]{
				Reconciler: reconcilers.Sequence[*fixture.Duck]{
					&reconcilers.SyncReconciler[*fixture.Duck]{
						Sync: func(ctx context.Context, duck *fixture.Duck) error {
							if duck.Status.Fields == nil {
								duck.Status.Fields = map[string]string{}
							}
							duck.Status.Fields["seen"] = duck.Spec.Fields["value"]
							return put(ctx, env, "thing", duck.Spec.Fields["value"])
						},
						Finalize: func(ctx context.Context, _ *fixture.Duck) error { return drop(ctx, env, "thing") },
					},
					&reconcilers.ChildReconciler[*fixture.Duck, *corev1.ConfigMap, *corev1.ConfigMapList]{
						DesiredChild: func(_ context.Context, duck *fixture.Duck) (*corev1.ConfigMap, error) {
							return config("child", duck.Spec.Fields["value"]), nil
						},
						ReflectChildStatusOnParent: func(_ context.Context, duck *fixture.Duck, child *corev1.ConfigMap, err error) {
							delete(duck.Status.Fields, "child")
							if err == nil && child != nil {
								duck.Status.Fields["child"] = child.Data["value"]
							}
						},
						MergeBeforeUpdate: mergeConfigMap,
					},
				},
			},
		}
	})
	prove(t, s)
}

// The reconcilers below have a separate config with its own guard against stale reads.
func TestWithConfig(t *testing.T) {
	s := under(t, func(env converge.Env) sub {
		other := reconcilers.Config{}.WithCluster(env.Manager)
		return &reconcilers.WithConfig[*fixture.Resource]{
			Config: func(_ context.Context, current reconcilers.Config) (reconcilers.Config, error) {
				other.Tracker = current.Tracker
				return other, nil
			},
			Reconciler: newChild(generatedName),
		}
	})
	s.Steps = lives()
	prove(t, s)
}

// The resource of the root is a duck type, whose status is patched.
func TestResourceReconciler_duck(t *testing.T) {
	s := under(t, nil)
	s.Setup = func(mgr reconcilers.Manager) error {
		env := converge.EnvOf(mgr)
		root := &reconcilers.ResourceReconciler[*fixture.Duck]{
			Type: fixture.NewDuck("", ""),
			Reconciler: &reconcilers.WithFinalizer[*fixture.Duck]{
				Finalizer: finalizer,
				Reconciler: &reconcilers.SyncReconciler[*fixture.Duck]{
					Sync: func(ctx context.Context, duck *fixture.Duck) error {
						duck.Status.Fields = map[string]string{"seen": duck.Spec.Fields["value"]}
						return put(ctx, env, "thing", duck.Spec.Fields["value"])
					},
					Finalize: func(ctx context.Context, _ *fixture.Duck) error { return drop(ctx, env, "thing") },
				},
			},
			Config: reconcilers.NewConfig(mgr, nil, time.Hour),
		}
		return root.SetupWithManager(t.Context(), mgr)
	}
	prove(t, s)
}
