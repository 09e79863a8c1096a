// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/validation"
)

type secretReconciler = reconcilers.ChildReconciler[*fixture.Resource, *corev1.Secret, *corev1.SecretList]

// newSecret returns a Secret without an owner.
func newSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// newSecretReconciler returns a reconciler for a Secret without an owner reference.
func newSecretReconciler() *secretReconciler {
	return &secretReconciler{
		SkipOwnerReference: true,
		OurChild:           func(*fixture.Resource, *corev1.Secret) bool { return true },
		ListOptions: func(_ context.Context, parent *fixture.Resource) []client.ListOption {
			return []client.ListOption{client.InNamespace(parent.Namespace)}
		},
		DesiredChild: func(
			context.Context, *fixture.Resource,
		) (*corev1.Secret, error) {
			return newSecret("secret"), nil
		},
		ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.Secret, error) {},
		// This is not the default manager, which tracks the object itself.
		ChildObjectManager: &reconcilers.UpdatingObjectManager[*corev1.Secret]{
			MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.Data = desired.Data },
		},
	}
}

// notify returns a subreconciler that records its requests.
func notify(calls requests) *syncReconciler {
	return &syncReconciler{Name: "Notify", Sync: func(ctx context.Context, _ *fixture.Resource) error {
		calls <- reconcilers.RetrieveRequest(ctx)
		return nil
	}}
}

func TestSetup_EventsTriggerTheResource(t *testing.T) {
	// Each resource is reached by another kind of event.
	const self, owner, keeper, byName, byLabel = "self", "owner", "keeper", "by-name", "by-label"
	parents := []client.Object{}
	for _, name := range []string{self, owner, keeper, byName, byLabel} {
		parents = append(parents, newResource(settled, func(r *fixture.Resource) { r.Name, r.UID = name, types.UID(name) }))
	}
	w := newWorld(t, parents...)
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	calls := make(requests, 100)
	secrets := newSecretReconciler()
	secrets.OurChild = func(parent *fixture.Resource, child *corev1.Secret) bool { return child.Name == "of-"+parent.Name }
	secrets.DesiredChild = func(_ context.Context, parent *fixture.Resource) (*corev1.Secret, error) {
		return newSecret("of-" + parent.Name), nil
	}
	track := &syncReconciler{
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.Service{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
		Sync: func(ctx context.Context, r *fixture.Resource) error {
			config := reconcilers.RetrieveConfigOrDie(ctx)
			switch r.Name {
			case byName:
				err := config.TrackAndGet(ctx, types.NamespacedName{Namespace: r.Namespace, Name: "theme"}, &corev1.Service{})
				return client.IgnoreNotFound(err)
			case byLabel:
				return config.TrackAndList(ctx, &corev1.ServiceList{}, client.MatchingLabels{"app": "test"})
			}
			return nil
		},
	}
	r := &resourceReconciler{
		Config: configFor(w, mgr),
		Reconciler: sequence{
			newChildReconciler(w, func(r *childReconciler) { r.DesiredChild = desire(nil, nil) }),
			secrets, track, notify(calls),
		},
	}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	start(t, mgr)

	for _, parent := range parents {
		events.changed(parent)
	}
	for range parents {
		calls.next(t, "the first events")
	}
	service := func(name string, labels map[string]string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}}
	}
	for _, tc := range []struct {
		what string
		obj  client.Object
		want string
	}{
		{
			"an event of a child that the resource owns",
			newConfigMap("child", func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].Name = owner }), owner,
		},
		{"an event of a child without an owner", newSecret("of-" + keeper), keeper},
		{"an event of what is tracked by name", service("theme", nil), byName},
		{"an event of what is tracked by label", service("any", map[string]string{"app": "test"}), byLabel},
		{"an event of the resource", parents[0], self},
	} {
		events.changed(tc.obj)
		// Several watches may deliver the same event, so the previous request may be repeated.
		for calls.next(t, tc.what).Name != tc.want {
			continue
		}
	}
}

func TestSetup_ChildrenWithoutOwnerReferencesTriggerTheParent(t *testing.T) {
	w := newWorld(t, newResource(settled))
	mgr := newManager(t, w, newEventCache(w.Scheme))
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newSecretReconciler()}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	for _, when := range []string{"created", "in sync"} {
		_, err := r.Reconcile(context.Background(), testRequest)
		wantErr(t, nil, err)
		equal(t, "tracks when "+when, true, w.Count("track Secret default/secret for default/test") > 0)
		w.Trace()
	}
	observers, err := w.Config.Tracker.GetObservers(newSecret("secret"))
	wantErr(t, nil, err)
	equal(t, "observers", []types.NamespacedName{testRequest.NamespacedName}, observers)
}

func TestSetup_PredicateDoesNotDropARequeue(t *testing.T) {
	parent := newResource(settled)
	w := newWorld(t, parent)
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	calls := make(requests, 10)
	r := &resourceReconciler{
		Config: configFor(w, mgr),
		// The predicate drops the watch event of the status write.
		SetupForOptions: []builder.ForOption{builder.WithPredicates(predicate.GenerationChangedPredicate{})},
		Reconciler:      sequence{notify(calls), setField(reconcilers.Result{RequeueAfter: time.Millisecond}, nil)},
	}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	start(t, mgr)
	events.changed(parent)
	calls.next(t, "the event")
	calls.next(t, "a status write that asked for a requeue")
	equal(t, "status writes", 1, w.Count("update Resource/status"))
}

func TestSetup_Order(t *testing.T) {
	w := newWorld(t)
	mgr := newManager(t, w, newEventCache(w.Scheme))
	config := configFor(w, mgr)
	order := []string{}
	setup := func(name string, err error) func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
		return func(ctx context.Context, got reconcilers.Manager, bldr *reconcilers.Builder) error {
			order = append(order, name)
			if got != mgr || bldr == nil || reconcilers.RetrieveConfigOrDie(ctx) != config ||
				reconcilers.RetrieveOriginalConfigOrDie(ctx) != config {
				t.Errorf("Setup of %s was called with incomplete arguments", name)
			}
			return err
		}
	}
	manager := &stubManager{}
	r := &resourceReconciler{
		Config: config, Setup: setup("root", nil),
		Reconciler: sequence{
			newChildReconciler(w, identifiedByName, func(r *childReconciler) {
				r.Setup, r.ChildObjectManager = setup("child", nil), manager
			}),
			newChildSetReconciler(w, identifiedByLabel, func(r *childSetReconciler) {
				r.Setup, r.ChildObjectManager = setup("child set", nil), manager
			}),
			&syncReconciler{Setup: setup("sync", nil), Sync: func(context.Context, *fixture.Resource) error { return nil }},
		},
	}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	equal(t, "order", []string{"root", "child", "child set", "sync"}, order)
	equal(t, "setups of the object managers", 2, manager.setup)

	r = &resourceReconciler{Config: config, Setup: setup("root", errTest), Reconciler: &part{}}
	wantErr(t, errTest, r.SetupWithManager(context.Background(), mgr))
	equal(t, "nested setups after a failure", 0, r.Reconciler.(*part).Setups)
}

func TestSetup_ListsEveryProblem(t *testing.T) {
	w := newWorld(t)
	mgr := newManager(t, w, newEventCache(w.Scheme))
	newTree := func() *resourceReconciler {
		return &resourceReconciler{Name: "root", Reconciler: sequence{
			&syncReconciler{Name: "first"},
			&childReconciler{Name: "second", SkipOwnerReference: true},
			&reconcilers.WithFinalizer[*fixture.Resource]{Name: "third", Reconciler: sequence{&syncReconciler{Name: "deep"}}},
		}}
	}
	const below = `ResourceReconciler "root" must have a valid Reconciler: Sequence must have a valid `
	problems := []string{
		below + `Sequence[0]: SyncReconciler "first" must implement Sync or SyncWithResult`,
		below + `Sequence[1]: ChildReconciler "second" must implement DesiredChild`,
		below +
			`Sequence[1]: ChildReconciler "second" must implement ReflectChildStatusOnParent or ReflectChildStatusOnParentWithError`,
		below + `Sequence[1]: ChildReconciler "second" must implement OurChild since owner references are not used`,
		below + `Sequence[1]: ChildReconciler "second" must implement ListOptions since owner references are not used`,
		below + `Sequence[1]: ChildReconciler "second" must implement ChildObjectManager`,
		below + `Sequence[2]: WithFinalizer "third" must define Finalizer`,
		below + `Sequence[2]: WithFinalizer "third" must have a valid Reconciler: Sequence must have a valid Sequence[0]: ` +
			`SyncReconciler "deep" must implement Sync or SyncWithResult`,
	}
	wantText(t, problems[0], newTree().Validate(validation.WithRecursive(context.Background())))
	problems[5] += adviceToMerge
	withConfig := newTree()
	withConfig.Config = configFor(w, mgr)
	wantText(t, strings.Join(problems, "\n"), withConfig.SetupWithManager(context.Background(), mgr))
	problems = append(problems, `ResourceReconciler "root" must define Config`)
	wantText(t, strings.Join(problems, "\n"), newTree().SetupWithManager(context.Background(), mgr))
	wantText(t, `ResourceReconciler "root" must define Config`,
		(&resourceReconciler{Name: "root", Reconciler: sequence{}}).SetupWithManager(context.Background(), mgr))
}

func TestSetup_DucksAreWatchedAsUnstructuredObjects(t *testing.T) {
	w := newWorld(t, newResource())
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	calls := make(requests, 10)
	child := fixture.NewDuck("", "")
	child.Kind = "ResourceNoStatus"
	list := &fixture.DuckList{}
	list.SetGroupVersionKind(fixture.GroupVersion.WithKind("ResourceNoStatusList"))
	r := &reconcilers.ResourceReconciler[*fixture.Duck]{
		Type: fixture.NewDuck("", ""), Config: configFor(w, mgr), SkipStatusUpdate: true,
		Reconciler: reconcilers.Sequence[*fixture.Duck]{
			&reconcilers.ChildReconciler[*fixture.Duck, *fixture.Duck, *fixture.DuckList]{
				ChildType: child, ChildListType: list,
				DesiredChild:               func(context.Context, *fixture.Duck) (*fixture.Duck, error) { return nil, nil },
				ReflectChildStatusOnParent: func(context.Context, *fixture.Duck, *fixture.Duck, error) {},
				ChildObjectManager: &reconcilers.UpdatingObjectManager[*fixture.Duck]{
					Type: child, DangerouslyAllowDuckTypes: true, MergeBeforeUpdate: func(_, _ *fixture.Duck) {},
				},
			},
			&reconcilers.SyncReconciler[*fixture.Duck]{Sync: func(ctx context.Context, _ *fixture.Duck) error {
				calls <- reconcilers.RetrieveRequest(ctx)
				return nil
			}},
		},
	}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	equal(t, "indexes", []string{"*unstructured.Unstructured by trueup.dev/controller-uid"}, events.indexed)
	start(t, mgr)

	unstructuredOf := func(kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(fixture.GroupVersion.WithKind(kind))
		u.SetNamespace("default")
		u.SetName("test")
		return u
	}
	events.changed(unstructuredOf("Resource"))
	equal(t, "request", testRequest, calls.next(t, "a watch event of the resource"))
	owned := unstructuredOf("ResourceNoStatus")
	owned.SetOwnerReferences(newConfigMap("child").OwnerReferences)
	events.changed(owned)
	equal(t, "request", testRequest, calls.next(t, "a watch event of a child"))
	for _, kind := range []string{"Resource", "ResourceNoStatus"} {
		informer := events.informer(unstructuredOf(kind))
		informer.mu.Lock()
		equal(t, "watched forms of "+kind, map[string]bool{"*unstructured.Unstructured": true}, informer.forms)
		informer.mu.Unlock()
	}
}

func TestSetup_ObjectManager(t *testing.T) {
	w := newWorld(t)
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	calls := make(requests, 10)
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: sequence{
		&syncReconciler{
			Sync: func(context.Context, *fixture.Resource) error { return nil },
			Setup: func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
				return (&configMaps{TrackDesired: true, MergeBeforeUpdate: mergeData}).SetupWithManager(ctx, mgr, bldr)
			},
		},
		notify(calls),
	}}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	wantErr(
		t, nil, w.Server.Create(context.Background(), newResource(func(r *fixture.Resource) { r.ResourceVersion = "" })),
	)
	wantErr(t, nil, w.Config.Tracker.TrackObject(newConfigMap("any"), newResource()))
	start(t, mgr)
	events.changed(newConfigMap("any", orphan))
	equal(t, "request", testRequest, calls.next(t, "a watch event of a tracked object"))

	nothing := &reconcilers.UpdatingObjectManager[client.Object]{
		Name: "test", TrackDesired: true, MergeBeforeUpdate: func(_, _ client.Object) {},
	}
	wantText(
		t, `UpdatingObjectManager "test" must define Type to use TrackDesired`,
		nothing.SetupWithManager(w.Context(), mgr, nil),
	)
	wantText(
		t, `UpdatingObjectManager "ConfigMapUpdatingObjectManager" must define MergeBeforeUpdate`,
		(&configMaps{}).SetupWithManager(w.Context(), mgr, nil),
	)
}

// childOf returns a reconciler of children that it does not desire.
func childOf[CT client.Object, CLT client.ObjectList]() reconcilers.SubReconciler[*fixture.Resource] {
	return &reconcilers.ChildReconciler[*fixture.Resource, CT, CLT]{
		DesiredChild:               func(context.Context, *fixture.Resource) (child CT, err error) { return child, nil },
		ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, CT, error) {},
		MergeBeforeUpdate:          func(_, _ CT) {},
	}
}

// What does set-up say about kinds that the scheme has not, or only a part of them?
func TestSetup_Kinds(t *testing.T) {
	withoutList := func(kinds ...runtime.Object) *runtime.Scheme {
		scheme := runtime.NewScheme()
		scheme.AddKnownTypes(fixture.GroupVersion, &fixture.Resource{}, &fixture.ResourceList{})
		scheme.AddKnownTypes(corev1.SchemeGroupVersion, kinds...)
		metav1.AddToGroupVersion(scheme, fixture.GroupVersion)
		return scheme
	}
	parentOnly := runtime.NewScheme()
	parentOnly.AddKnownTypes(fixture.GroupVersion, &fixture.Resource{})
	for name, c := range map[string]struct {
		scheme     *runtime.Scheme
		reconciler reconcilers.SubReconciler[*fixture.Resource]
		want       string
	}{
		"a child that the scheme has not": {
			fixture.NewScheme(),
			childOf[*apiextensionsv1.CustomResourceDefinition, *apiextensionsv1.CustomResourceDefinitionList](),
			`ChildReconciler "CustomResourceDefinitionChildReconciler": the scheme does not have the kind of ` +
				`*v1.CustomResourceDefinition: add its package with AddToScheme, or set apiVersion and kind in ChildType if ` +
				`it is a duck type: object must directly define APIVersion and Kind`,
		},
		"a child as metadata": {
			fixture.NewScheme(), childOf[*metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList](),
			`ResourceReconciler "ResourceResourceReconciler" must have a valid Reconciler: ` +
				`ChildReconciler "PartialObjectMetadataChildReconciler" must not have the ChildType PartialObjectMetadata, which has no spec: use the type of the child, ` +
				`or unstructured.Unstructured`,
		},
		"a child without its list": {
			withoutList(&corev1.ConfigMap{}), childOf[*corev1.ConfigMap, *corev1.ConfigMapList](),
			`ResourceResourceReconciler: the scheme has ConfigMap, but not ConfigMapList, without which no cache can watch it: ` +
				`add &ConfigMapList{} to SchemeBuilder.Register`,
		},
		"a parent without its list": {
			parentOnly, &syncReconciler{Sync: func(context.Context, *fixture.Resource) error { return nil }},
			`ResourceResourceReconciler: the scheme has Resource, but not ResourceList, without which no cache can watch it: ` +
				`add &ResourceList{} to SchemeBuilder.Register`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			mgr, err := ctrl.NewManager(&rest.Config{Host: "http://" + closedPort(t)}, ctrl.Options{
				Scheme: c.scheme, Metrics: server.Options{BindAddress: "0"},
				Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
			})
			wantErr(t, nil, err)
			r := &resourceReconciler{Config: reconcilers.NewConfig(mgr, nil, time.Hour), Reconciler: c.reconciler}
			wantText(t, c.want, r.SetupWithManager(t.Context(), mgr))
		})
	}
}

// wrapper is a user's reconciler that does not set up what it contains.
type wrapper struct {
	subReconciler
	setup func(bldr *reconcilers.Builder)
}

func (w *wrapper) SetupWithManager(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
	if w.setup != nil {
		w.setup(bldr)
	}
	return nil
}

// Is it said that SetupWithManager was not called? Once, by a controller.
func TestSetupWithManager_NotCalled(t *testing.T) {
	const root = `SetupWithManager of ResourceReconciler \"ResourceResourceReconciler\" was not called`
	const child = `SetupWithManager of ChildReconciler \"ConfigMapChildReconciler\" was not called, and the controller does ` +
		`not watch ConfigMap`
	for name, tc := range map[string]struct {
		wrap      func(subReconciler) subReconciler
		noSetup   bool
		noManager bool
		want      string
	}{
		"of none":                    {noSetup: true, want: root},
		"of none, without a manager": {noSetup: true, noManager: true},
		"of a part that a wrapper forgets": {
			wrap: func(r subReconciler) subReconciler { return &wrapper{r, nil} }, want: child,
		},
		"of a part, whose kind is watched": {wrap: func(r subReconciler) subReconciler {
			return &wrapper{r, func(bldr *reconcilers.Builder) { bldr.Owns(&corev1.ConfigMap{}) }}
		}},
		"called": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			mgr := newManager(t, w, newEventCache(w.Scheme))
			log, lines := newLog(0)
			ctx := withLog(context.Background(), log)
			part := subReconciler(newChild(func(*fixture.Resource, string) {}))
			if tc.wrap != nil {
				part = tc.wrap(part)
			}
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: part}
			if tc.noManager {
				r.Config = w.Config
			}
			if !tc.noSetup {
				wantErr(t, nil, r.SetupWithManager(ctx, mgr))
			}
			for range 2 {
				_, err := r.ReconcileManaged(ctx, testRequest)
				wantErr(t, nil, err)
			}
			want := 1
			if tc.want == "" {
				want = 0
			}
			if got := strings.Count(lines.all(), "was not called"); got != want || !strings.Contains(lines.all(), tc.want) {
				t.Errorf("%d messages, want %d of %q:\n%s", got, want, tc.want, lines.all())
			}
		})
	}
}

// requestLog records the requests of a client.
type requestLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *requestLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, req.Method+" "+req.URL.Path)
		return next.RoundTrip(req)
	})
}

func (l *requestLog) made() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// closedPort returns the address of a port that refuses connections.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	wantErr(t, nil, err)
	wantErr(t, nil, listener.Close())
	return listener.Addr().String()
}

func TestSetup_NeedsNoAPIServer(t *testing.T) {
	var requests requestLog
	rest := &rest.Config{Host: "http://" + closedPort(t)}
	rest.Wrap(requests.wrap)
	scheme := fixture.NewScheme()
	mgr, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{
			SkipNameValidation: new(true),
		},
	})
	wantErr(t, nil, err)
	remote, err := cluster.New(rest, func(o *cluster.Options) { o.Scheme = scheme })
	wantErr(t, nil, err)
	wantErr(t, nil, mgr.Add(remote))
	config := reconcilers.NewConfig(mgr, nil, time.Hour)
	there := config.WithCluster(remote)

	w := newWorld(t) // only the children need it, nothing reads from it
	untyped, untypedList := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	untyped.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	untypedList.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DeploymentList"})
	r := &resourceReconciler{
		Config: config,
		Setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.WithOptions(controller.Options{CacheSyncTimeout: 3 * time.Second})
			return nil
		},
		Reconciler: sequence{
			newChildReconciler(w, identifiedByName), newChildSetReconciler(w, identifiedByLabel, func(r *childSetReconciler) {
				r.ChildObjectManager = &configMaps{MergeBeforeUpdate: mergeData, TrackDesired: true}
			}),
			&reconcilers.ChildReconciler[*fixture.Resource, *unstructured.Unstructured, *unstructured.UnstructuredList]{
				ChildType: untyped, ChildListType: untypedList,
				DesiredChild: func(
					context.Context, *fixture.Resource,
				) (*unstructured.Unstructured, error) {
					return nil, nil
				},
				ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *unstructured.Unstructured, error) {},
				MergeBeforeUpdate:          func(_, _ *unstructured.Unstructured) {},
			},
			&withConfig{
				Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return there, nil },
				Reconciler: newDeploymentReconciler(new("one")),
			},
			&syncReconciler{
				Sync: func(context.Context, *fixture.Resource) error { return nil },
				Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
					bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
					return nil
				},
			},
		},
	}
	wantErr(t, nil, r.SetupWithManager(t.Context(), mgr))
	aggregate := &reconcilers.AggregateReconciler[*fixture.Resource]{
		Config: config, Request: testRequest, MergeBeforeUpdate: func(_, _ *fixture.Resource) {},
		Reconciler: newChildReconciler(w, identifiedByName),
	}
	wantErr(t, nil, aggregate.SetupWithManager(t.Context(), mgr))
	equal(t, "requests of setup", nil, requests.made())

	failed := func() float64 {
		return apitest.Counted(t, "trueup_owner_index_failures_total", map[string]string{"kind": "ConfigMap"})
	}
	before := failed()
	err = mgr.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), " by owner") {
		t.Errorf("error of Start: %v\nwant the name of the index and the cause", err)
	}
	if failed() == before {
		t.Error("failed attempts were not counted")
	}
	if len(requests.made()) == 0 {
		t.Error("Start made no requests, so this test does not prove anything about setup")
	}
}
