// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// finalizer is the finalizer of the tested reconcilers.
const finalizer = "fixture.trueup.dev/convergence"

var scheme = fixture.NewScheme()

// sub is the type of the subreconcilers in most tests.
type sub = reconcilers.SubReconciler[*fixture.Resource]

// under is a scenario with a ResourceReconciler over what build returns. A resource is created, changed and deleted.
func under(t *testing.T, build func(env converge.Env) sub) converge.Scenario {
	t.Helper()
	return converge.Scenario{
		Scheme: scheme,
		For:    &fixture.Resource{},
		Setup: func(mgr ctrl.Manager) error {
			root := &reconcilers.ResourceReconciler[*fixture.Resource]{
				Reconciler: build(converge.EnvOf(mgr)), Config: reconcilers.NewConfig(mgr, nil, time.Hour),
			}
			return root.SetupWithManager(t.Context(), mgr)
		},
		Steps: converge.Lifecycle(newResource("one"), setField("value", "two")),
	}
}

// newResource returns a resource with a value.
func newResource(value string) *fixture.Resource {
	return &fixture.Resource{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "a"},
		Spec:       fixture.ResourceSpec{Fields: map[string]string{"value": value}},
	}
}

// setField changes the spec. An empty value removes the field.
func setField(name, value string) func(*fixture.Resource) {
	return func(resource *fixture.Resource) {
		resource.Spec.Fields = maps.Clone(resource.Spec.Fields)
		if resource.Spec.Fields[name] = value; value == "" {
			delete(resource.Spec.Fields, name)
		}
	}
}

// again is the life of a resource, and of a second one with the same name.
func again(first, second *fixture.Resource) []converge.Step {
	return converge.Steps(
		converge.Apply(first), converge.Settle(), converge.Delete(first), converge.Settle(),
		converge.Apply(second), converge.Settle(), converge.Delete(second), converge.Settle(),
	)
}

// report writes what a reconciler observed to the status.
func report(resource *fixture.Resource, name, value string) {
	if value == "" {
		delete(resource.Status.Fields, name)
		return
	}
	if resource.Status.Fields == nil {
		resource.Status.Fields = map[string]string{}
	}
	resource.Status.Fields[name] = value
}

// configMap is a child of a resource.
func configMap(resource *fixture.Resource, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: resource.Namespace, Name: name},
		Data:       map[string]string{"value": resource.Spec.Fields["value"]},
	}
}

func mergeConfigMap(current, desired *corev1.ConfigMap) {
	current.Data, current.Labels = desired.Data, reconcilers.MergeMaps(current.Labels, desired.Labels)
}

// publishes is a reconciler that keeps a thing outside of the cluster as long as the resource exists.
func publishes(env converge.Env, key string) sub {
	return &reconcilers.SyncReconciler[*fixture.Resource]{
		Name: "Publish " + key,
		Sync: func(ctx context.Context, resource *fixture.Resource) error {
			if err := put(ctx, env, key, resource.Spec.Fields["value"]); err != nil {
				return err
			}
			report(resource, key, resource.Spec.Fields["value"])
			return nil
		},
		Finalize: func(ctx context.Context, _ *fixture.Resource) error { return drop(ctx, env, key) },
	}
}

// put calls the outside system only if the call would have an effect.
func put(ctx context.Context, env converge.Env, key, value string) error {
	current, err := env.Cloud.Get(ctx, key)
	if err == nil && current == value {
		return nil
	}
	if err != nil && !errors.Is(err, converge.ErrAbsent) {
		return err
	}
	return env.Cloud.Put(ctx, key, value)
}

func drop(ctx context.Context, env converge.Env, key string) error {
	err := env.Cloud.Delete(ctx, key)
	if errors.Is(err, converge.ErrAbsent) {
		return nil
	}
	return err
}

// objects is a list of objects.
func objects(objs ...client.Object) []client.Object { return objs }
