// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// TestWatchesOfMetadataLoseNoUpdates changes a large object, whose metadata arrives before its content, and waits for
// each change to arrive in the status. A lost change does not arrive: nothing else triggers the resource.
func TestWatchesOfMetadataLoseNoUpdates(t *testing.T) {
	const updates = 60
	configMaps := newUnstructured(corev1.SchemeGroupVersion.WithKind("ConfigMap"), "")
	for name, watch := range map[string]func(ctx context.Context, bldr *reconcilers.Builder){
		"tracked": func(ctx context.Context, bldr *reconcilers.Builder) {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx), builder.OnlyMetadata)
		},
		"unstructured": func(ctx context.Context, bldr *reconcilers.Builder) {
			bldr.Watches(configMaps, reconcilers.EnqueueTracked(ctx))
		},
		"owned": func(_ context.Context, bldr *reconcilers.Builder) {
			bldr.Owns(&corev1.ConfigMap{}, builder.OnlyMetadata)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			large := func(i int) map[string]string {
				return map[string]string{"v": fmt.Sprint(i), "rest": strings.Repeat("x", 50_000)}
			}
			e.start(root(&reconcilers.SyncReconciler[*fixture.Resource]{
				Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
					watch(ctx, bldr)
					return nil
				},
				Sync: func(ctx context.Context, resource *fixture.Resource) error {
					c, read := reconcilers.RetrieveConfigOrDie(ctx), &corev1.ConfigMap{}
					key := types.NamespacedName{Namespace: resource.Namespace, Name: "large"}
					get := c.TrackAndGet
					if name == "owned" {
						get = c.Get
					}
					if err := get(ctx, key, read); client.IgnoreNotFound(err) != nil {
						return err
					}
					resource.Status.Fields = map[string]string{"v": read.Data["v"]}
					return nil
				},
			}))
			resource := newResource("it", nil)
			e.Add(resource)
			object := newConfigMap("large", large(0))
			object.Namespace = e.Namespace
			e.Must(controllerutil.SetControllerReference(resource, object, e.Scheme()))
			e.Add(object)
			for i := range updates {
				if i > 0 {
					object.Data = large(i)
					e.Must(e.Update(e.Context(), object))
				}
				until(e, resource, func(r *fixture.Resource) error {
					return different("the value in the status", fmt.Sprint(i), r.Status.Fields["v"])
				})
			}
		})
	}
}

// TestWatchOfMetadataOfTheResource is the same for the resource itself.
func TestWatchOfMetadataOfTheResource(t *testing.T) {
	e := newEnv(t)
	large := func(i int) map[string]string {
		return map[string]string{"v": fmt.Sprint(i), "rest": strings.Repeat("x", 50_000)}
	}
	e.start(func(ctx context.Context, mgr reconcilers.Manager, c reconcilers.Config) error {
		return (&reconcilers.ResourceReconciler[*fixture.Resource]{
			SetupForOptions: []builder.ForOption{builder.OnlyMetadata},
			Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
				Sync: func(_ context.Context, resource *fixture.Resource) error {
					resource.Status.Fields = map[string]string{"v": resource.Spec.Fields["v"]}
					return nil
				},
			},
			Config: c,
		}).SetupWithManager(ctx, mgr)
	})
	resource := newResource("it", large(0))
	e.Add(resource)
	changes := 60
	if testing.Short() {
		changes = 20 // a third of the updates were lost
	}
	for i := range changes {
		if i > 0 {
			change(e, resource, func(r *fixture.Resource) { r.Spec.Fields = large(i) })
		}
		until(e, resource, func(r *fixture.Resource) error {
			return different("the value in the status", fmt.Sprint(i), r.Status.Fields["v"])
		})
	}
}
