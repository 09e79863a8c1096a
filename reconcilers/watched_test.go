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
			counted := apitest.Counting(t, "trueup_tracked_unwatched_total", map[string]string{
				"controller": r.Name, "kind": "Secret",
			})
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
			if tc.want == "" {
				lacks(t, lines.all(), unwatched)
				equal(t, "counted", 0, counted())
				return
			}
			equal(t, "messages", 1, strings.Count(lines.all(), unwatched))
			contains(t, strings.ReplaceAll(lines.all(), `\"`, `"`), `"add to Setup"="`+tc.want+`"`)
			equal(t, "counted", 2, counted())
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

const watchedInOtherForm = "the kind is watched in another form than it is read"

// A controller also watches the form that its reconcilers read: the informer of another form may be behind.
func TestWatched_FormsThatAreRead(t *testing.T) {
	untyped := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	metadata := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
	key := client.ObjectKey{Namespace: "default", Name: "it"}
	type setup = func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder)
	track := func(obj client.Object) func(ctx context.Context, c reconcilers.Config) error {
		return func(ctx context.Context, c reconcilers.Config) error { return c.TrackAndGet(ctx, key, obj) }
	}
	get := func(obj client.Object) func(ctx context.Context, c reconcilers.Config) error {
		return func(ctx context.Context, c reconcilers.Config) error { return c.Get(ctx, key, obj) }
	}
	tracked := func(obj client.Object, options ...builder.WatchesOption) setup {
		return func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) {
			bldr.Watches(obj, reconcilers.EnqueueTracked(ctx), options...)
		}
	}
	for name, tc := range map[string]struct {
		setup   setup
		options []builder.ForOption
		read    func(ctx context.Context, c reconcilers.Config) error
		// form is the form that is read. watched is whether the controller then watches it; message is whether this is new.
		form    client.Object
		watched bool
		message bool
	}{
		"tracked, metadata": {
			setup: tracked(&corev1.Secret{}, builder.OnlyMetadata), read: track(&corev1.Secret{}),
			form: &corev1.Secret{}, watched: true, message: true,
		},
		"tracked, metadata objects": {
			setup: tracked(metadata), read: track(&corev1.Secret{}), form: &corev1.Secret{}, watched: true, message: true,
		},
		"tracked, unstructured": {
			setup: tracked(untyped), read: track(&corev1.Secret{}), form: &corev1.Secret{}, watched: true, message: true,
		},
		"tracked, a list": {
			setup: tracked(&corev1.Secret{}, builder.OnlyMetadata),
			read: func(ctx context.Context, c reconcilers.Config) error {
				return c.TrackAndList(ctx, &corev1.SecretList{})
			},
			form: &corev1.Secret{}, watched: true, message: true,
		},
		"tracked, typed, metadata is read": {
			setup: tracked(&corev1.Secret{}), read: track(metadata.DeepCopy()), form: metadata, watched: true, message: true,
		},
		"tracked, a source": {
			setup: func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) {
				bldr.WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), metadata, reconcilers.EnqueueTracked(ctx)))
			},
			read: track(&corev1.Secret{}), form: &corev1.Secret{}, watched: true, message: true,
		},
		"tracked in both forms": {
			setup: func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) {
				tracked(&corev1.Secret{}, builder.OnlyMetadata)(ctx, mgr, bldr)
				tracked(&corev1.Secret{})(ctx, mgr, bldr)
			},
			read: track(&corev1.Secret{}), form: &corev1.Secret{},
		},
		"the form is watched": {
			setup: tracked(&corev1.Secret{}), read: track(&corev1.Secret{}), form: &corev1.Secret{}, watched: true,
		},
		"metadata is watched and read": {
			setup: tracked(&corev1.Secret{}, builder.OnlyMetadata), read: track(metadata.DeepCopy()),
			form: metadata, watched: true,
		},
		"not read": {
			setup: tracked(&corev1.Secret{}, builder.OnlyMetadata),
			read:  func(context.Context, reconcilers.Config) error { return nil }, form: &corev1.Secret{},
		},
		"read without the cache": {
			setup: tracked(&corev1.Secret{}, builder.OnlyMetadata),
			read: func(ctx context.Context, c reconcilers.Config) error {
				return c.APIReader.Get(ctx, key, &corev1.Secret{})
			},
			form: &corev1.Secret{},
		},
		"unstructured objects are not read from the cache": {
			setup: tracked(&corev1.Secret{}), read: get(untyped.DeepCopy()), form: untyped,
		},
		"owned": {
			setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) {
				bldr.Owns(&corev1.Secret{}, builder.OnlyMetadata)
			},
			read: get(&corev1.Secret{}), form: &corev1.Secret{}, watched: true, message: true,
		},
		"owned by one of several": {
			setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) {
				bldr.Owns(&corev1.Secret{}, builder.OnlyMetadata, builder.MatchEveryOwner)
			},
			read: get(&corev1.Secret{}), form: &corev1.Secret{}, watched: true, message: true,
		},
		"a custom handler": {
			setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) {
				bldr.Watches(&corev1.Secret{}, handler.Funcs{}, builder.OnlyMetadata)
			},
			read: get(&corev1.Secret{}), form: &corev1.Secret{}, watched: true, message: true,
		},
		"a handler that needs metadata": {
			setup: func(_ context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) {
				bldr.WatchesRawSource(source.Kind(mgr.GetCache(), metadata,
					handler.TypedEnqueueRequestsFromMapFunc(
						func(context.Context, *metav1.PartialObjectMetadata) []reconcilers.Request { return nil })))
			},
			read: get(&corev1.Secret{}), form: &corev1.Secret{}, watched: true, message: true,
		},
		"the resource": {
			options: []builder.ForOption{builder.OnlyMetadata},
			read:    func(context.Context, reconcilers.Config) error { return nil },
			form:    &fixture.Resource{}, watched: true, message: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			mgr := newManager(t, w, newEventCache(w.Scheme))
			log, lines := newLog(0)
			ctx := withLog(context.Background(), log)
			r := &resourceReconciler{
				Config: configFor(w, mgr), SetupForOptions: tc.options,
				Setup: func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
					if tc.setup != nil {
						tc.setup(ctx, mgr, bldr)
					}
					return nil
				},
				Reconciler: &syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
					return client.IgnoreNotFound(tc.read(ctx, reconcilers.RetrieveConfigOrDie(ctx)))
				}},
			}
			wantErr(t, nil, r.SetupWithManager(ctx, mgr))
			for range 2 {
				_, err := r.ReconcileManaged(ctx, testRequest)
				wantErr(t, nil, err)
			}
			withForm, all := r.WatchesWithForm(tc.form)
			equal(t, "every watch has the form", tc.watched, withForm == all)
			want := 0
			if tc.message {
				want = 1
			}
			equal(t, "messages", want, strings.Count(lines.all(), watchedInOtherForm))
		})
	}
}
