// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

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
