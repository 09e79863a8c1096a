// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestRecordWiring_Controllers(t *testing.T) {
	deployment := watchesOf(&appsv1.Deployment{})
	for name, tc := range map[string]struct {
		build func(bldr *reconcilers.Builder, mgr ctrl.Manager)
		want  Wiring
	}{
		"owner and owned": {
			build: func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				bldr.For(&appsv1.Deployment{}).Owns(&appsv1.ReplicaSet{})
			},
			want: Wiring{For: deployment, Owns: watchesOf(&appsv1.ReplicaSet{})},
		},
		"any owner": {
			build: func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				bldr.For(&corev1.Namespace{}).Owns(&corev1.Pod{}, builder.MatchEveryOwner)
			},
			want: Wiring{For: watchesOf(&corev1.Namespace{}), Owns: watchesOf(&corev1.Pod{})},
		},
		"owned by a kind that is not watched": {
			build: func(bldr *reconcilers.Builder, mgr ctrl.Manager) {
				bldr.Named("pods").Watches(
					&corev1.Pod{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &appsv1.DaemonSet{}),
				)
			},
			want: Wiring{Controller: "pods", Owns: watchesOf(&corev1.Pod{})},
		},
		"bare metadata": {
			build: func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				bldr.For(&appsv1.Deployment{}, builder.OnlyMetadata).Owns(&appsv1.ReplicaSet{}, builder.OnlyMetadata)
			},
			want: Wiring{
				For: watchesOf(metadataKind("apps/v1", "Deployment")), Owns: watchesOf(metadataKind("apps/v1", "ReplicaSet")),
			},
		},
		"options": {
			build: func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				bldr.For(&appsv1.Deployment{}).Named("rollout").WithOptions(controller.Options{
					MaxConcurrentReconciles: 4, CacheSyncTimeout: time.Minute, ReconciliationTimeout: time.Second,
					RecoverPanic: new(false), NeedLeaderElection: new(false), EnableWarmup: new(true),
				})
			},
			want: Wiring{Controller: "rollout", For: deployment, Options: ControllerOptions{
				MaxConcurrentReconciles: 4, CacheSyncTimeout: time.Minute, ReconciliationTimeout: time.Second,
				RecoverPanic: new(false), NeedLeaderElection: new(false), EnableWarmup: new(true),
			}},
		},
		"defaults": {
			build: func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				bldr.For(&appsv1.Deployment{}).Named("deployment").WithOptions(controller.Options{
					UsePriorityQueue: new(false), RecoverPanic: new(true),
				})
			},
			want: Wiring{For: deployment, Options: ControllerOptions{
				MaxConcurrentReconciles: 1, CacheSyncTimeout: 2 * time.Minute,
				RecoverPanic: new(true), NeedLeaderElection: new(true), EnableWarmup: new(false),
			}},
		},
		"a predicate for generations": {
			build: func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				bldr.For(&appsv1.Deployment{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
					Owns(&corev1.ConfigMap{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
					Owns(&certificatesv1.CertificateSigningRequest{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
					Owns(&corev1.Pod{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
			},
			want: Wiring{
				For: []Watch{{Object: &appsv1.Deployment{}, Ignores: generationIgnores}},
				Owns: []Watch{
					{Object: &corev1.Pod{}, Ignores: generationIgnores},
					// These have no generation.
					{Object: &corev1.ConfigMap{}, Ignores: append([]Change{SpecChanged, DeletionRequested}, generationIgnores...)},
					{
						Object:  &certificatesv1.CertificateSigningRequest{},
						Ignores: append([]Change{SpecChanged, DeletionRequested}, generationIgnores...),
					},
				},
			},
		},
		"predicates for everything": {
			build: func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				bldr.For(&appsv1.Deployment{}).Owns(&appsv1.ReplicaSet{}, builder.WithPredicates(predicate.Funcs{
					CreateFunc: func(event.CreateEvent) bool { return false },
					DeleteFunc: func(event.DeleteEvent) bool { return false },
				})).WithEventFilter(predicate.Or(predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
			},
			want: Wiring{
				For: []Watch{
					{Object: &appsv1.Deployment{}, Ignores: []Change{SpecChanged, StatusChanged, Resynced, DeletionRequested}},
				},
				Owns: []Watch{
					{
						Object:  &appsv1.ReplicaSet{},
						Ignores: []Change{Created, Deleted, SpecChanged, StatusChanged, Resynced, DeletionRequested},
					},
				},
			},
		},
		"one of two watches lets a change pass": {
			build: func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				bldr.For(&appsv1.Deployment{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
					Watches(
						&appsv1.Deployment{}, &handler.EnqueueRequestForObject{},
						builder.WithPredicates(predicate.LabelChangedPredicate{}),
					)
			},
			want: Wiring{
				For: []Watch{{Object: &appsv1.Deployment{}, Ignores: []Change{StatusChanged, AnnotationsChanged, Resynced}}},
			},
		},
		"requests after a while": {
			build: func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				type queue = workqueue.TypedRateLimitingInterface[reconcilers.Request]
				request := func(obj client.Object) reconcilers.Request {
					return reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
				}
				bldr.Named("later").Watches(&appsv1.Deployment{}, handler.Funcs{
					CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { q.AddAfter(request(e.Object), time.Hour) },
					DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { q.AddRateLimited(request(e.Object)) },
				})
			},
			want: Wiring{Controller: "later", For: []Watch{{
				Object: &appsv1.Deployment{}, Ignores: []Change{
					SpecChanged, StatusChanged, LabelsChanged, AnnotationsChanged, Resynced, DeletionRequested,
				},
			}}},
		},
		"a mapping": {
			build: func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				mapping := func(_ context.Context, obj client.Object) []reconcilers.Request {
					return []reconcilers.Request{
						{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName() + "-tls"}},
					}
				}
				bldr.For(&appsv1.Deployment{}).Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(mapping),
					builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
			},
			want: Wiring{For: deployment, Watches: []Watch{{Object: &corev1.Secret{}, Ignores: []Change{Resynced}}}},
		},
		"other sources": {
			build: func(bldr *reconcilers.Builder, mgr ctrl.Manager) {
				informer, err := mgr.GetCache().GetInformer(t.Context(), &corev1.Pod{})
				if err != nil {
					t.Fatal(err)
				}
				// Handlers of the author do not belong to the controller.
				if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{}); err != nil {
					t.Fatal(err)
				}
				bldr.For(&appsv1.Deployment{}).
					WatchesRawSource(&source.Informer{Informer: informer, Handler: &handler.EnqueueRequestForObject{}}).
					WatchesRawSource(source.Channel(make(chan event.GenericEvent), &handler.EnqueueRequestForObject{})).
					WatchesRawSource(
						source.Kind(mgr.GetCache(), &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{}),
					).
					WatchesRawSource(source.Func(func(
						ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcilers.Request],
					) error {
						request := reconcilers.Request{NamespacedName: types.NamespacedName{Name: "first"}}
						queue.Add(request)
						informer, err := mgr.GetCache().GetInformerForKind(ctx, corev1.SchemeGroupVersion.WithKind("Event"))
						if err != nil {
							return err
						}
						_, err = informer.AddEventHandlerWithResyncPeriod(toolscache.ResourceEventHandlerFuncs{
							DeleteFunc: func(any) { queue.Add(request) },
						}, time.Minute)
						return err
					}))
			},
			want: Wiring{
				For: watchesOf(&appsv1.Deployment{}, &corev1.Node{}, &corev1.Pod{}),
				Watches: []Watch{
					{
						Object: &corev1.Event{}, Ignores: []Change{
							Created, SpecChanged, StatusChanged, LabelsChanged, AnnotationsChanged, Resynced, DeletionRequested,
						},
					},
				},
				AtStart: []reconcilers.Request{{NamespacedName: types.NamespacedName{Name: "first"}}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			RecordWiring(t, wiringScheme(t), wiredPlain(t, tc.build)).Assert(t, &tc.want)
		})
	}
}

func TestRecordWiring_GivenObjects(t *testing.T) {
	labeled := builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetLabels()["class"] == "ours" && (obj.GetName() != "typed" || obj.(*corev1.Secret).Data != nil)
	}))
	setUp := wiredPlain(t, func(bldr *reconcilers.Builder, _ ctrl.Manager) {
		bldr.For(&fixture.Resource{}, labeled).
			Owns(&corev1.ConfigMap{}, builder.OnlyMetadata, labeled).
			Owns(&corev1.Secret{}, labeled).
			Owns(unstructuredKind("apps/v1", "Deployment"), labeled)
	})
	ours := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"class": "ours"}}
	}
	duck := fixture.NewDuck("default", "it")
	duck.Labels = ours("").Labels
	secret := unstructuredKind("v1", "Secret")
	secret.Object["metadata"] = map[string]any{
		"namespace": "default", "name": "typed", "labels": map[string]any{"class": "ours"},
	}
	secret.Object["data"] = map[string]any{"key": "dmFsdWU="}
	given := []client.Object{
		duck, secret, &corev1.ConfigMap{ObjectMeta: ours("it")}, &appsv1.Deployment{ObjectMeta: ours("it")},
	}

	deployment, metadata := unstructuredKind("apps/v1", "Deployment"), metadataKind("v1", "ConfigMap")
	want := &Wiring{For: watchesOf(&fixture.Resource{}), Owns: watchesOf(metadata, &corev1.Secret{}, deployment)}
	RecordWiring(t, wiringScheme(t), setUp, given...).Assert(t, want)

	nothingSeen := &Wiring{
		Controller: "resource", Watches: watchesOf(&fixture.Resource{}, metadata, &corev1.Secret{}, deployment),
	}
	RecordWiring(t, wiringScheme(t), setUp).Assert(t, nothingSeen)
}

func TestRecordWiring_SeveralControllers(t *testing.T) {
	setUp := func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
		for _, name := range []string{"first", "second"} {
			child := newWiredChild()
			child.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Name == name }
			r := &wiredRoot{Name: name, Config: config.WithTracker(), Reconciler: wiredSequence{child}}
			if err := r.SetupWithManager(ctx, mgr); err != nil {
				return err
			}
		}
		return mgr.Add(neverStarted{t})
	}
	resource, configMap := watchesOf(&fixture.Resource{}), watchesOf(&corev1.ConfigMap{})
	// Only the tracker of the config shows which resources track an object.
	RecordWiring(t, wiringScheme(t), setUp).Assert(t, &Wiring{
		Controller: "first", For: resource, Owns: configMap, Watches: configMap, Indexes: []Index{
			{Object: &corev1.ConfigMap{}, Field: ownerIndex},
		},
		Others: []Wiring{{Controller: "second", For: resource, Owns: configMap, Watches: configMap}},
	})
}

// neverStarted is a Runnable that must not be started.
type neverStarted struct{ t *testing.T }

func (n neverStarted) Start(context.Context) error {
	n.t.Error("a Runnable was started")
	return nil
}
