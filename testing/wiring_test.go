// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// generationIgnores is what a predicate for changes of the generation filters out.
var generationIgnores = []Change{StatusChanged, LabelsChanged, AnnotationsChanged, Resynced}

func TestRecordWiring_Trees(t *testing.T) {
	resource, configMap := watchesOf(&fixture.Resource{}), watchesOf(&corev1.ConfigMap{})
	configMapByOwner := []Index{{Object: &corev1.ConfigMap{}, Field: ownerIndex}}
	for name, tc := range map[string]struct {
		setUp setUpFunc
		want  Wiring
	}{
		"a resource": {
			setUp: wiredWith(),
			want:  Wiring{For: resource, Indexes: []Index{}},
		},
		"a child": {
			setUp: wiredWith(newWiredChild()),
			want:  Wiring{For: resource, Owns: configMap, Tracks: configMap, Indexes: configMapByOwner},
		},
		"two children of a kind": {
			setUp: wiredWith(newWiredChild(identifiedByName("a")), newWiredChild(identifiedByName("b"))),
			want:  Wiring{For: resource, Owns: configMap, Tracks: configMap, Indexes: configMapByOwner},
		},
		"a child without an owner": {
			setUp: wiredWith(newWiredChild(withoutOwnerReference)),
			want:  Wiring{For: resource, Tracks: configMap, Indexes: []Index{}},
		},
		"a child set": {
			setUp: wiredWith(&reconcilers.ChildSetReconciler[*fixture.Resource, *corev1.Secret, *corev1.SecretList]{
				DesiredChildren: func(context.Context, *fixture.Resource) ([]*corev1.Secret, error) { return nil, nil },
				ReflectChildrenStatusOnParent: func(
					context.Context, *fixture.Resource, reconcilers.ChildSetResult[*corev1.Secret],
				) {
				},
				IdentifyChild:     func(child *corev1.Secret) string { return child.Name },
				MergeBeforeUpdate: func(_, _ *corev1.Secret) {},
			}),
			want: Wiring{
				For: resource, Owns: watchesOf(&corev1.Secret{}), Tracks: watchesOf(&corev1.Secret{}),
				Indexes: []Index{{Object: &corev1.Secret{}, Field: ownerIndex}},
			},
		},
		"what is tracked": {
			setUp: wiredWith(tracking(&corev1.Service{}), tracking(&corev1.Node{})),
			want:  Wiring{For: resource, Tracks: watchesOf(&corev1.Node{}, &corev1.Service{})},
		},
		"an object manager that tracks": {
			setUp: wiredBy(func(ctx context.Context, mgr ctrl.Manager, bldr *reconcilers.Builder) error {
				manager := &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
					TrackDesired: true, MergeBeforeUpdate: func(_, _ *corev1.ConfigMap) {},
				}
				return manager.SetupWithManager(ctx, mgr, bldr)
			}),
			want: Wiring{For: resource, Tracks: configMap},
		},
		"deep in a tree": {
			setUp: wiredWith(&reconcilers.WithFinalizer[*fixture.Resource]{
				Finalizer: "test.example.com/it",
				Reconciler: &reconcilers.IfThen[*fixture.Resource]{
					If:   func(context.Context, *fixture.Resource) bool { return false },
					Then: newWiredChild(),
					Else: &reconcilers.CastResource[*fixture.Resource, *appsv1.Deployment]{
						Reconciler: &reconcilers.SyncReconciler[*appsv1.Deployment]{
							Sync: func(context.Context, *appsv1.Deployment) error { return nil },
							Setup: func(ctx context.Context, _ ctrl.Manager, bldr *reconcilers.Builder) error {
								bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
								return nil
							},
						},
					},
				},
			}),
			want: Wiring{
				For: resource, Owns: configMap, Tracks: watchesOf(&corev1.ConfigMap{}, &corev1.Secret{}), Indexes: configMapByOwner,
			},
		},
		"ducks": {
			setUp: func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
				return (&reconcilers.ResourceReconciler[*fixture.Duck]{
					Type: fixture.NewDuck("", ""), Config: config, SkipStatusUpdate: true,
					Reconciler: reconcilers.Sequence[*fixture.Duck]{},
				}).SetupWithManager(ctx, mgr)
			},
			want: Wiring{For: watchesOf(unstructuredKind(fixture.GroupVersion.String(), "Resource"))},
		},
		"unstructured objects of a kind that the scheme does not know": {
			setUp: func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
				return (&reconcilers.ResourceReconciler[*unstructured.Unstructured]{
					Type: unstructuredKind("example.com/v1", "Website"), Config: config,
					Reconciler: reconcilers.Sequence[*unstructured.Unstructured]{},
					Setup: func(_ context.Context, _ ctrl.Manager, bldr *reconcilers.Builder) error {
						bldr.Owns(&corev1.Service{})
						return nil
					},
				}).SetupWithManager(ctx, mgr)
			},
			want: Wiring{For: watchesOf(unstructuredKind("example.com/v1", "Website")), Owns: watchesOf(&corev1.Service{})},
		},
		"an aggregate": {
			setUp: func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
				request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "it"}}
				return (&reconcilers.AggregateReconciler[*corev1.ConfigMap]{
					Request: request, Config: config, MergeBeforeUpdate: func(_, _ *corev1.ConfigMap) {},
					Setup: func(_ context.Context, _ ctrl.Manager, bldr *reconcilers.Builder) error {
						// Every Secret leads to the one request, also a Secret of the same name.
						bldr.Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(func(
							context.Context, client.Object,
						) []reconcilers.Request {
							return []reconcilers.Request{request}
						}))
						return nil
					},
				}).SetupWithManager(ctx, mgr)
			},
			want: Wiring{
				For: configMap, Watches: watchesOf(&corev1.Secret{}),
				AtStart: []reconcilers.Request{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "it"}}},
			},
		},
		"a child in another cluster": {
			setUp: func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
				there := OtherCluster(t, mgr, "remote")
				if err := mgr.Add(there); err != nil {
					return err
				}
				remote := config.WithCluster(there)
				return wiredWith(newWiredChild(), &reconcilers.WithConfig[*fixture.Resource]{
					Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return remote, nil },
					Reconciler: newWiredChild(),
				})(ctx, mgr, config)
			},
			want: Wiring{
				For:     resource,
				Owns:    []Watch{{Object: &corev1.ConfigMap{}}, {Object: &corev1.ConfigMap{}, Cluster: "remote"}},
				Tracks:  []Watch{{Object: &corev1.ConfigMap{}}, {Object: &corev1.ConfigMap{}, Cluster: "remote"}},
				Indexes: append(configMapByOwner, Index{Object: &corev1.ConfigMap{}, Field: ownerIndex, Cluster: "remote"}),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			RecordWiring(t, wiringScheme(t), tc.setUp).Assert(t, &tc.want)
		})
	}
}
