// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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

func TestDiffWiring(t *testing.T) {
	request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "it"}}
	website := watchesOf(&fixture.Resource{})
	for name, tc := range map[string]struct {
		expected, observed *Wiring
		want               []string
	}{
		"equal": {
			expected: &Wiring{For: website}, observed: &Wiring{For: website, notes: []string{"not shown"}},
		},
		"the order, repetitions and contents do not matter": {
			expected: &Wiring{
				For:  website,
				Owns: watchesOf(&corev1.Secret{}, &corev1.ConfigMap{Data: map[string]string{"a": "b"}}, &corev1.Secret{}),
			},
			observed: &Wiring{For: website, Owns: watchesOf(&corev1.ConfigMap{}, &corev1.Secret{})},
		},
		"wrapped objects": {
			expected: &Wiring{
				For: watchesOf(dieLike{&corev1.ConfigMap{}}),
			}, observed: &Wiring{For: watchesOf(&corev1.ConfigMap{})},
		},
		"the order of what is ignored": {
			expected: &Wiring{For: []Watch{{Object: &fixture.Resource{}, Ignores: []Change{Deleted, Created}}}},
			observed: &Wiring{For: []Watch{{Object: &fixture.Resource{}, Ignores: []Change{Created, Deleted}}}},
		},
		"a watch that was forgotten, and one that was not expected": {
			expected: &Wiring{For: website, Owns: watchesOf(&appsv1.Deployment{}, &corev1.Service{})},
			observed: &Wiring{
				For: website, Owns: watchesOf(&appsv1.Deployment{}), Tracks: watchesOf(&corev1.Service{}),
				notes: []string{"this", "that"},
			},
			want: []string{
				"  For: trueup.dev/internal/testkit/fixture.Resource",
				"  Owns: k8s.io/api/apps/v1.Deployment",
				"- Owns: k8s.io/api/core/v1.Service",
				"+ Tracks: k8s.io/api/core/v1.Service",
				"note: this", "note: that",
			},
		},
		"forms of a kind": {
			expected: &Wiring{Watches: watchesOf(&corev1.ConfigMap{})},
			observed: &Wiring{Watches: watchesOf(unstructuredKind("v1", "ConfigMap"), metadataKind("v1", "ConfigMap"))},
			want: []string{
				"- Watches: k8s.io/api/core/v1.ConfigMap", "+ Watches: v1 ConfigMap (metadata only)",
				"+ Watches: v1 ConfigMap (unstructured)",
			},
		},
		"another cluster": {
			expected: &Wiring{
				Owns: []Watch{{Object: &corev1.Secret{}, Cluster: "remote"}},
			}, observed: &Wiring{Owns: watchesOf(&corev1.Secret{})},
			want: []string{"+ Owns: k8s.io/api/core/v1.Secret", `- Owns: k8s.io/api/core/v1.Secret in cluster "remote"`},
		},
		"what is ignored": {
			expected: &Wiring{For: website}, observed: &Wiring{
				For: []Watch{{Object: &fixture.Resource{}, Ignores: generationIgnores}},
			},
			want: []string{
				"- For: trueup.dev/internal/testkit/fixture.Resource",
				"+ For: trueup.dev/internal/testkit/fixture.Resource, ignores: status changed, labels changed, " +
					"annotations changed, resynced",
			},
		},
		"nothing": {
			expected: &Wiring{For: []Watch{{}}}, observed: &Wiring{},
			want: []string{"- For: nothing"},
		},
		"no expectation": {
			observed: &Wiring{For: website},
			want:     []string{"+ For: trueup.dev/internal/testkit/fixture.Resource"},
		},
		"the controller": {
			expected: &Wiring{
				Controller: "site", AtStart: []reconcilers.Request{request},
				Options: ControllerOptions{ReconciliationTimeout: time.Second},
			},
			observed: &Wiring{
				Options: ControllerOptions{MaxConcurrentReconciles: 2, CacheSyncTimeout: 2 * time.Minute, RecoverPanic: new(false)},
			},
			want: []string{
				"- Controller: site", "- AtStart: default/it",
				"+ Options: MaxConcurrentReconciles 2", "- Options: ReconciliationTimeout 1s", "+ Options: RecoverPanic false",
			},
		},
		"no name was expected": {
			expected: &Wiring{}, observed: &Wiring{Controller: "site"},
			want: []string{"+ Controller: site"},
		},
		"indexes without an assertion": {
			expected: &Wiring{}, observed: &Wiring{Indexes: []Index{{Object: &corev1.Pod{}, Field: "spec.nodeName"}}},
		},
		"no index": {
			expected: &Wiring{Indexes: []Index{}}, observed: &Wiring{
				Indexes: []Index{{Object: &corev1.Pod{}, Field: "spec.nodeName", Cluster: "remote"}},
			},
			want: []string{`+ Indexes: k8s.io/api/core/v1.Pod in cluster "remote" by spec.nodeName`},
		},
		"a further controller": {
			expected: &Wiring{Others: []Wiring{{For: website}}},
			observed: &Wiring{Others: []Wiring{{For: website, Controller: "first"}, {}}},
			want: []string{
				"- Others: further controllers: 1", "+ Others: further controllers: 2",
				"+ Others[0].Controller: first", "  Others[0].For: trueup.dev/internal/testkit/fixture.Resource",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Join(tc.want, "\n"), diffWiring(tc.expected, tc.observed)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// dieLike is an object that unwraps itself when it is copied.
type dieLike struct{ client.Object }

func (w dieLike) DeepCopyObject() runtime.Object { return w.Object.DeepCopyObject() }

func TestWiring_Notes(t *testing.T) {
	const observed = "no event of k8s.io/api/core/v1.ConfigMap led to a request: the predicates or the handler may " +
		"accept only certain objects, or use a tracker other than that of the config. Give an object that they accept to " +
		"see what it leads to."
	for name, tc := range map[string]struct {
		accepts func(client.Object) bool
		want    []string
	}{
		"nothing is seen": {
			accepts: func(client.Object) bool { return false },
			want:    []string{observed},
		},
		"a panic": {
			accepts: func(obj client.Object) bool { return obj.(*corev1.ConfigMap).BinaryData["key"][0] == 1 },
			want: []string{
				"an event of k8s.io/api/core/v1.ConfigMap made a predicate or the handler of the watch panic: " +
					"runtime error: index out of range [0] with length 0",
				observed,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wiring := RecordWiring(t, wiringScheme(t), wiredPlain(t, func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				bldr.For(&fixture.Resource{}).Owns(
					&corev1.ConfigMap{}, builder.WithPredicates(predicate.NewPredicateFuncs(tc.accepts)),
				)
			}))
			if diff := cmp.Diff(tc.want, wiring.notes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			wiring.Assert(t, &Wiring{For: watchesOf(&fixture.Resource{}), Watches: watchesOf(&corev1.ConfigMap{})})
		})
	}
}

// withManager is set up by most plain reconcilers' signature.
type withManager struct{ t *testing.T }

func (r withManager) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).Complete(neverCalled(r.t))
}

// withContext is set up by the signature of trueup's own.
type withContext struct{ withManager }

func (r withContext) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if len(reconcilers.RetrieveAdditionalConfigs(ctx)) != 1 {
		r.t.Error("the additional config is not on the context")
	}
	return r.withManager.SetupWithManager(mgr)
}

func TestRecordReconciler_Signatures(t *testing.T) {
	for name, product := range map[string]any{
		"manager": withManager{t}, "context and manager": withContext{withManager{t}},
	} {
		wiring, err := recordReconciler(
			t.Context(), wiringScheme(t), func(reconcilers.Config) any { return product }, map[string]ExpectConfig{"remote": {}},
			nil,
		)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wiring.Assert(t, &Wiring{For: watchesOf(&corev1.Pod{})})
	}
	_, err := recordReconciler(
		t.Context(), wiringScheme(t), func(reconcilers.Config) any { return neverCalled(t) }, nil, nil,
	)
	want := "must have a method SetupWithManager(context.Context, ctrl.Manager) error or SetupWithManager(ctrl.Manager) " +
		"error"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want %q, got %v", want, err)
	}
}

func TestRecordSubReconciler(t *testing.T) {
	factory := func(config reconcilers.Config) reconcilers.SubReconciler[*fixture.Resource] {
		return wiredSequence{
			newWiredChild(),
			&reconcilers.WithConfig[*fixture.Resource]{
				Config: func(ctx context.Context, current reconcilers.Config) (reconcilers.Config, error) {
					if current != config {
						t.Error("the config of the set-up is not the one of the factory")
					}
					return reconcilers.RetrieveAdditionalConfigs(ctx)["remote"], nil
				},
				Reconciler: newWiredChild(withoutOwnerReference),
			},
			&wiredSync{
				Sync: func(context.Context, *fixture.Resource) error { return nil },
				Setup: func(_ context.Context, _ ctrl.Manager, bldr *reconcilers.Builder) error {
					bldr.Owns(&corev1.Secret{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
					return nil
				},
			},
		}
	}
	wiring, err := recordSubReconciler(
		t.Context(), wiringScheme(t), &fixture.Resource{}, factory, map[string]ExpectConfig{"remote": {}}, nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	wiring.Assert(t, &Wiring{
		Owns: []Watch{
			{Object: &corev1.Secret{}, Ignores: append([]Change{SpecChanged, DeletionRequested}, generationIgnores...)},
			{Object: &corev1.ConfigMap{}},
		},
		Tracks:  []Watch{{Object: &corev1.ConfigMap{}}, {Object: &corev1.ConfigMap{}, Cluster: "remote"}},
		Indexes: []Index{{Object: &corev1.ConfigMap{}, Field: ownerIndex}},
	})
}

func TestRecordSubReconciler_Kinds(t *testing.T) {
	configMaps := func(reconcilers.Config) reconcilers.SubReconciler[client.Object] {
		return &reconcilers.SyncReconciler[client.Object]{
			Sync: func(context.Context, client.Object) error { return nil },
			Setup: func(_ context.Context, _ ctrl.Manager, bldr *reconcilers.Builder) error {
				bldr.Owns(&corev1.ConfigMap{})
				return nil
			},
		}
	}
	for name, resource := range map[string]client.Object{
		"typed":        &fixture.Resource{},
		"duck":         fixture.NewDuck("", ""),
		"unstructured": unstructuredKind("example.com/v1", "Website"),
	} {
		wiring, err := recordSubReconciler(t.Context(), wiringScheme(t), resource, configMaps, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wiring.Assert(t, &Wiring{Owns: watchesOf(&corev1.ConfigMap{})})
	}
	_, err := recordSubReconciler(t.Context(), wiringScheme(t), client.Object(&unknownKind{}), configMaps, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "no kind is registered") {
		t.Errorf("an unknown kind: %v", err)
	}
}

// Factories that prepare the client of a case do so when they are called for the wiring, too.
func TestExpectWiring_FactoryWithReactor(t *testing.T) {
	called := 0
	SubReconcilerTests[*fixture.Resource]{
		"case": {
			Resource:     &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test"}},
			ExpectWiring: &Wiring{},
		},
	}.Run(t, wiringScheme(t), func(
		_ *testing.T, _ *SubReconcilerTestCase[*fixture.Resource], c reconcilers.Config,
	) reconcilers.SubReconciler[*fixture.Resource] {
		called++
		fake := c.Client.(TestClient)
		fake.AddReactor("get", "*", func(Action) (bool, runtime.Object, error) { return false, nil, nil })
		fake.PrependReactor("list", "*", func(Action) (bool, runtime.Object, error) { return false, nil, nil })
		fake.AddGiven(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "given"}})
		return &reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(context.Context, *fixture.Resource) error { return nil },
		}
	})
	if called != 2 {
		t.Errorf("the factory was called %d times, want 2", called)
	}
}

type (
	wiredRoot     = reconcilers.ResourceReconciler[*fixture.Resource]
	wiredSequence = reconcilers.Sequence[*fixture.Resource]
	wiredSync     = reconcilers.SyncReconciler[*fixture.Resource]
	wiredChild    = reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]
)

func wiringScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, fixture.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// wiredWith is a set-up of a ResourceReconciler with subreconcilers.
func wiredWith(below ...reconcilers.SubReconciler[*fixture.Resource]) setUpFunc {
	return func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
		return (&wiredRoot{Config: config, Reconciler: wiredSequence(below)}).SetupWithManager(ctx, mgr)
	}
}

// wiredBy is a set-up of a ResourceReconciler with its Setup function.
func wiredBy(setup func(ctx context.Context, mgr ctrl.Manager, bldr *reconcilers.Builder) error) setUpFunc {
	return func(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
		return (&wiredRoot{Config: config, Setup: setup, Reconciler: wiredSequence{}}).SetupWithManager(ctx, mgr)
	}
}

// wiredPlain is a set-up of a controller that is built without anything of trueup. Its reconciler must not be called.
func wiredPlain(t testing.TB, build func(bldr *reconcilers.Builder, mgr ctrl.Manager)) setUpFunc {
	return func(_ context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
		bldr := ctrl.NewControllerManagedBy(mgr)
		build(bldr, mgr)
		return bldr.Complete(neverCalled(t))
	}
}

func neverCalled(t testing.TB) reconcile.Reconciler {
	return reconcile.Func(func(_ context.Context, request reconcilers.Request) (reconcilers.Result, error) {
		t.Errorf("the reconciler was called with %s", request)
		return reconcilers.Result{}, nil
	})
}

// newWiredChild returns a reconciler for a ConfigMap.
func newWiredChild(edits ...func(*wiredChild)) *wiredChild {
	r := &wiredChild{
		DesiredChild:               func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) { return nil, nil },
		ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {},
		MergeBeforeUpdate:          func(_, _ *corev1.ConfigMap) {},
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func withoutOwnerReference(r *wiredChild) {
	r.SkipOwnerReference = true
	r.OurChild = func(*fixture.Resource, *corev1.ConfigMap) bool { return true }
	r.ListOptions = func(context.Context, *fixture.Resource) []client.ListOption { return nil }
}

// identifiedByName makes a ChildReconciler tell its child from others of the kind.
func identifiedByName(name string) func(*wiredChild) {
	return func(r *wiredChild) {
		r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Name == name }
	}
}

// tracking returns a reconciler that watches a kind for the resources that track it.
func tracking(obj client.Object) *wiredSync {
	return &wiredSync{
		Sync: func(context.Context, *fixture.Resource) error { return nil },
		Setup: func(ctx context.Context, _ ctrl.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(obj, reconcilers.EnqueueTracked(ctx))
			return nil
		},
	}
}

func unstructuredKind(apiVersion, kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	return obj
}

func metadataKind(apiVersion, kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
}

// watchesOf lists kinds without anything that is ignored.
func watchesOf(objs ...client.Object) []Watch {
	return each(objs, func(obj client.Object) Watch { return Watch{Object: obj} })
}

// ownerIndex is the index that child reconcilers ask for.
const ownerIndex = "trueup.dev/controller-uid"
