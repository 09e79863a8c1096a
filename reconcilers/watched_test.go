// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

const unwatched = "the kind of a tracked object is not watched, its changes will not trigger the resource"

// tracking returns a step that tracks a Secret that does not exist.
func tracking() *syncReconciler {
	return &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
		key := types.NamespacedName{Namespace: r.Namespace, Name: "missing"}
		return client.IgnoreNotFound(reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &corev1.Secret{}))
	}}
}

func TestTracked_UnwatchedKinds(t *testing.T) {
	type setup = func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder)
	secrets := &unstructured.Unstructured{}
	secrets.SetAPIVersion("v1")
	secrets.SetKind("Secret")
	kept := []handler.EventHandler{}
	w := newWorld(t)
	remote := newManager(t, w, newEventCache(w.Scheme))
	for name, tc := range map[string]struct {
		setup  setup
		change func(r *resourceReconciler)
		yields bool
		want   string // the line to add
	}{
		"no watch": {want: "bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))"},
		"another watch": {
			setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) {
				bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
			},
			want: "bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))",
		},
		"owned only": {
			setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) { bldr.Owns(&corev1.Secret{}) },
			want:  "bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))",
		},
		"list": {
			change: func(r *resourceReconciler) {
				r.Reconciler = &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
					return reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, &corev1.SecretList{})
				}}
			},
			want: "bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))",
		},
		"unstructured": {
			change: func(r *resourceReconciler) {
				r.Reconciler = &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
					err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(
						ctx, types.NamespacedName{Namespace: "default", Name: "missing"}, secrets.DeepCopy(),
					)
					return client.IgnoreNotFound(err)
				}}
			},
			want: `bldr.Watches(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}, reconcilers.EnqueueTracked(ctx))`,
		},
		"metadata": {
			change: func(r *resourceReconciler) {
				r.Reconciler = &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
					list := &metav1.PartialObjectMetadataList{}
					list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
					return reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, list)
				}}
			},
			want: "bldr.WatchesMetadata(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))",
		},
		"in another cluster": {
			change: func(r *resourceReconciler) { r.Reconciler = inCluster(r.Config.WithCluster(remote), tracking()) },
			want: "bldr.WatchesRawSource(source.Kind[client.Object](cluster.GetCache(), &corev1.Secret{}, " +
				"reconcilers.EnqueueTracked(ctx)))",
		},
		"watched": {setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) {
			bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
		}},
		"watched by a step": {change: func(r *resourceReconciler) {
			step := tracking()
			step.Setup = func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
				return nil
			}
			r.Reconciler = step
		}},
		"watched by a child reconciler": {
			change: func(r *resourceReconciler) { r.Reconciler = sequence{newSecretReconciler(), tracking()} },
		},
		"watched by an object manager": {setup: func(
			ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
		) {
			manager := &reconcilers.UpdatingObjectManager[*corev1.Secret]{
				TrackDesired: true, MergeBeforeUpdate: func(_, _ *corev1.Secret) {},
			}
			wantErr(t, nil, manager.SetupWithManager(ctx, mgr, bldr))
		}},
		"watched as metadata": {setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) {
			bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx), builder.OnlyMetadata)
		}},
		"watched as unstructured objects": {setup: func(
			ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder,
		) {
			bldr.Watches(secrets, reconcilers.EnqueueTracked(ctx))
		}},
		"watched by a source": {setup: func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) {
			bldr.WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &corev1.Secret{}, reconcilers.EnqueueTracked(ctx)))
		}},
		"watched in another cluster": {change: func(r *resourceReconciler) {
			step := tracking()
			step.Setup = func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.WatchesRawSource(
					source.Kind[client.Object](remote.GetCache(), &corev1.Secret{}, reconcilers.EnqueueTracked(ctx)),
				)
				return nil
			}
			r.Reconciler = inCluster(r.Config.WithCluster(remote), step)
		}},
		"a custom handler": {setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) {
			bldr.Watches(
				&corev1.Secret{},
				handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcilers.Request { return nil }),
			)
		}},
		"a typed source": {setup: func(_ context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) {
			bldr.WatchesRawSource(source.Kind(mgr.GetCache(), &corev1.Secret{},
				handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, *corev1.Secret) []reconcilers.Request {
					return nil
				})))
		}},
		"part of another handler": {setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) {
			bldr.Watches(&corev1.ConfigMap{}, handler.Funcs{CreateFunc: reconcilers.EnqueueTracked(ctx).Create})
		}},
		"a custom source": {setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) {
			bldr.WatchesRawSource(source.Channel(make(chan event.GenericEvent), &handler.EnqueueRequestForObject{}))
		}},
		"an unused handler": {setup: func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) {
			kept = append(kept, reconcilers.EnqueueTracked(ctx))
		}},
		"controller is yielded": {yields: true},
		"a watch by the step itself": {change: func(r *resourceReconciler) {
			step := tracking()
			sync := step.Sync
			step.Sync = func(ctx context.Context, r *fixture.Resource) error {
				kept = append(kept, reconcilers.EnqueueTracked(ctx))
				return sync(ctx, r)
			}
			r.Reconciler = step
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			mgr := newManager(t, w, newEventCache(w.Scheme))
			log, lines := newLog(0)
			ctx := withLog(context.Background(), log)
			r := &resourceReconciler{Name: strings.ReplaceAll(name, " ", "-"), Config: configFor(w, mgr), Reconciler: tracking()}
			if tc.change != nil {
				tc.change(r)
			}
			r.Setup = func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
				if tc.setup != nil {
					tc.setup(ctx, mgr, bldr)
				}
				return nil
			}
			setUp := r.SetupWithManager
			if tc.yields {
				setUp = func(ctx context.Context, mgr reconcilers.Manager) error {
					_, err := r.SetupWithManagerYieldingController(ctx, mgr)
					return err
				}
			}
			wantErr(t, nil, setUp(ctx, mgr))
			for range 2 {
				_, err := r.ReconcileManaged(ctx, testRequest)
				wantErr(t, nil, err)
			}
			counted := apitest.Counted(t, "trueup_tracked_unwatched_total", map[string]string{
				"controller": r.Name, "kind": "Secret",
			})
			if tc.want == "" {
				lacks(t, lines.all(), unwatched)
				equal(t, "counted", 0, counted)
				return
			}
			equal(t, "messages", 1, strings.Count(lines.all(), unwatched))
			contains(t, strings.ReplaceAll(lines.all(), `\"`, `"`), `"add to Setup"="`+tc.want+`"`)
			equal(t, "counted", 2, counted)
		})
	}
}

// inCluster runs a step with another config.
func inCluster(there reconcilers.Config, step subReconciler) subReconciler {
	return &withConfig{
		Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return there, nil },
		Reconciler: step,
	}
}
