// SPDX-License-Identifier: Apache-2.0

package generations

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// These are the examples that the documentation of reconciler.io runtime adds to those of v0.19. The others are
// identical except for the import path.

// The documented loop ignores errors because its condition is always true. Here an error ends the loop.
func callTwice(reconciler reconcilers.SubReconciler[*Function]) reconcilers.SubReconciler[*Function] {
	return &reconcilers.Advice[*Function]{
		Reconciler: reconciler,
		Around: func(
			ctx context.Context, resource *Function, reconciler reconcilers.SubReconciler[*Function],
		) (reconcile.Result, error) {
			result := reconcilers.Result{}
			for range 2 {
				r, err := reconciler.Reconcile(ctx, resource)
				result = reconcilers.AggregateResults(result, r)
				if err != nil {
					return result, err
				}
			}
			return result, nil
		},
	}
}

func TestRuntime_Advice(t *testing.T) {
	calls := 0
	function := newFunction()
	reconcileBelow(t, newWorld(t, function), callTwice(&reconcilers.SyncReconciler[*Function]{
		Sync: func(context.Context, *Function) error {
			calls++
			return nil
		},
	}), function)
	equal(t, "calls", 2, calls)
}

func volumeMountReconciler(found *[]string) reconcilers.SubReconciler[*corev1.Pod] {
	containerCursorStasher := reconcilers.CursorStasher[corev1.Container]()
	volumeMountCursorStasher := reconcilers.CursorStasher[corev1.VolumeMount]()

	return &reconcilers.ForEach[*corev1.Pod, corev1.Container]{
		Items: func(_ context.Context, resource *corev1.Pod) ([]corev1.Container, error) {
			return resource.Spec.Containers, nil
		},
		Reconciler: &reconcilers.ForEach[*corev1.Pod, corev1.VolumeMount]{
			Items: func(ctx context.Context, _ *corev1.Pod) ([]corev1.VolumeMount, error) {
				containerCursor := containerCursorStasher.RetrieveOrDie(ctx)
				return containerCursor.Item.VolumeMounts, nil
			},
			Reconciler: &reconcilers.SyncReconciler[*corev1.Pod]{
				Sync: func(ctx context.Context, _ *corev1.Pod) error {
					container := containerCursorStasher.RetrieveOrDie(ctx)
					mount := volumeMountCursorStasher.RetrieveOrDie(ctx)
					*found = append(
						*found, fmt.Sprintf("%s %d/%d %s", container.Item.Name, mount.Index+1, mount.Length, mount.Item.Name),
					)
					return nil
				},
			},
		},
	}
}

func TestRuntime_ForEach(t *testing.T) {
	var found []string
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "web", VolumeMounts: []corev1.VolumeMount{{Name: "pages"}, {Name: "cache"}}},
			{Name: "sidecar", VolumeMounts: []corev1.VolumeMount{{Name: "cache"}}},
		}},
	}
	reconcileBelow(t, newWorld(t, pod), volumeMountReconciler(&found), pod)
	equal(t, "found", []string{"web 1/2 pages", "web 2/2 cache", "sidecar 1/1 cache"}, found)
}

type example struct{ Value string }

var exampleStasher = reconcilers.NewStasher[example]("example")

func TestRuntime_Stasher(t *testing.T) {
	var got example
	function := newFunction()
	reconcileBelow(t, newWorld(t, function), reconcilers.Sequence[*Function]{
		&reconcilers.SyncReconciler[*Function]{
			Name: "StashExample",
			Sync: func(ctx context.Context, _ *Function) error {
				exampleStasher.Store(ctx, example{Value: "exposed"})
				return nil
			},
		},
		&reconcilers.SyncReconciler[*Function]{
			Name: "StashExample",
			Sync: func(ctx context.Context, _ *Function) error {
				value, err := exampleStasher.RetrieveOrError(ctx)
				if err != nil {
					return fmt.Errorf("%w for key %q", err, exampleStasher.Key())
				}
				got = value
				return nil
			},
		},
	}, function)
	equal(t, "value", example{Value: "exposed"}, got)
}

// The finalizer stays until ReadyToClearFinalizer returns true.
func TestRuntime_ReadyToClearFinalizer(t *testing.T) {
	remaining := reconcilers.NewStasher[int]("remaining")
	left := 2
	r := &reconcilers.WithFinalizer[*Function]{
		Finalizer: "unique.finalizer.name",
		ReadyToClearFinalizer: func(ctx context.Context, _ *Function) bool {
			return remaining.RetrieveOrEmpty(ctx) == 0
		},
		Reconciler: &reconcilers.SyncReconciler[*Function]{
			Sync: func(context.Context, *Function) error { return nil },
			Finalize: func(ctx context.Context, _ *Function) error {
				left--
				remaining.Store(ctx, left)
				return nil
			},
		},
	}
	function := newFunction()
	w := newWorld(t, function)
	reconcileBelow(t, w, r, function)
	if err := w.Delete(t.Context(), function); err != nil {
		t.Fatal(err)
	}
	reconcileBelow(t, w, r, function)
	w.get(t, function)
	equal(t, "held by", []string{"unique.finalizer.name"}, function.Finalizers)
	reconcileBelow(t, w, r, function)
	w.gone(t, function)
}

// A custom object manager must be set up by the code that uses it.
func TestRuntime_SetupOfAnObjectManager(t *testing.T) {
	manager := &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
	}
	requireWiring(t, rtesting.Wiring{For: []rtesting.Watch{{Object: &Function{}}}}, func(
		reconcilers.Config,
	) reconcilers.SubReconciler[*Function] {
		return &reconcilers.SyncReconciler[*Function]{
			Sync:  func(context.Context, *Function) error { return nil },
			Setup: manager.SetupWithManager, // was manager.Setup(ctx)
		}
	})
}

// onlyCreate is a custom strategy: an object is created once and never changed.
type onlyCreate struct{}

var _ reconcilers.ObjectManager[*corev1.ConfigMap] = onlyCreate{}

func (onlyCreate) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (onlyCreate) Manage(
	ctx context.Context, _ client.Object, actual, desired *corev1.ConfigMap,
) (*corev1.ConfigMap, error) {
	if desired == nil || (actual != nil && !actual.CreationTimestamp.IsZero()) {
		return actual, nil
	}
	return desired, reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, desired)
}

func TestRuntime_ObjectManager(t *testing.T) {
	managers := map[string]struct {
		manager reconcilers.ObjectManager[*corev1.ConfigMap]
		want    string
	}{
		"updating": {
			manager: &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
				MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
			},
			want: "second",
		},
		"custom": {manager: onlyCreate{}, want: "first"},
	}
	for name, tt := range managers {
		t.Run(name, func(t *testing.T) {
			value := "first"
			var got string
			r := &reconcilers.ChildReconciler[*Function, *corev1.ConfigMap, *corev1.ConfigMapList]{
				DesiredChild: func(_ context.Context, parent *Function) (*corev1.ConfigMap, error) {
					return &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{
							Namespace: parent.Namespace,
							Name:      parent.Name,
						},
						Data: map[string]string{"value": value},
					}, nil
				},
				ChildObjectManager: tt.manager,
				ReflectChildStatusOnParent: func(_ context.Context, _ *Function, child *corev1.ConfigMap, _ error) {
					got = child.Data["value"]
				},
			}
			function := newFunction()
			w := newWorld(t, function)
			reconcileBelow(t, w, r, function)
			value = "second"
			reconcileBelow(t, w, r, function)
			equal(t, "value", tt.want, got)
		})
	}
}

// Tests pass further configs to reconcilers that use several clusters.
func TestRuntime_AdditionalConfigs(t *testing.T) {
	function := newFunction()
	w, other := newWorld(t, function), newWorld(t)
	called := false
	root := &reconcilers.ResourceReconciler[*Function]{
		Reconciler: &reconcilers.WithConfig[*Function]{
			Config: func(ctx context.Context, _ reconcilers.Config) (reconcilers.Config, error) {
				return reconcilers.RetrieveAdditionalConfigs(ctx)["other"], nil
			},
			Reconciler: &reconcilers.SyncReconciler[*Function]{
				Sync: func(ctx context.Context, _ *Function) error {
					called = true
					equal(t, "the other config", true, reconcilers.RetrieveConfigOrDie(ctx) == other.Config)
					return nil
				},
			},
		},
		Config: w.Config,
	}
	ctx := reconcilers.StashAdditionalConfigs(t.Context(), map[string]reconcilers.Config{"other": other.Config})
	if _, err := root.Reconcile(
		ctx, reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(function)},
	); err != nil {
		t.Fatal(err)
	}
	equal(t, "called", true, called)
}
