// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/shards"
	"trueup.dev/simple"
)

func TestNewAppListsAllMistakes(t *testing.T) {
	watcher, reconciler := &simple.Watcher{}, &simple.Reconciler{}
	tree := operator.Widen(reconcilers.Sequence[*Widget]{})
	for name, tc := range map[string]struct {
		config simple.AppConfig
		want   []string
	}{
		"kinds": {
			config: simple.AppConfig{
				ManagedKinds: []simple.AppManagedKind{
					{Watcher: watcher},
					{Kind: resource.Kind{Schema: resource.NewSimpleSchema(group, "", &GadgetV1{}, &GadgetV1List{})}, Watcher: watcher},
					{Kind: widgetKind, Watcher: watcher},
					{Kind: widgetKind},
					{Kind: gadgetV1, Watcher: watcher},
					{Kind: gadgetV2, Watcher: watcher},
				},
				UnmanagedKinds: []simple.AppUnmanagedKind{{}, {Kind: widgetKind}},
			},
			want: []string{
				`ManagedKinds[0].Kind is required`,
				`ManagedKinds[1].Kind is not valid: kind GadgetV1..simple.example.com must define Version`,
				`ManagedKinds[3].Kind is Widget.v1.simple.example.com, which is a duplicate of ManagedKinds[2]`,
				`ManagedKinds[5] has a handler for Gadget.simple.example.com, but ManagedKinds[4] has one already: ` +
					`a handler receives objects of all versions, so only one version may have a handler`,
				`UnmanagedKinds[0].Kind is required`,
				`UnmanagedKinds[1] must have one of .Watcher, .Reconciler and .SubReconciler`,
			},
		},
		"handlers": {
			config: simple.AppConfig{
				ManagedKinds: []simple.AppManagedKind{
					{Kind: widgetKind, Watcher: watcher, Reconciler: reconciler},
					{Kind: gadgetV1, Watcher: watcher, Reconciler: reconciler, SubReconciler: tree},
				},
				UnmanagedKinds: []simple.AppUnmanagedKind{{Kind: widgetKind, Reconciler: reconciler, SubReconciler: tree}},
			},
			want: []string{
				`ManagedKinds[0].Watcher and .Reconciler are both set`,
				`ManagedKinds[1].Watcher, .Reconciler and .SubReconciler are all set`,
				`UnmanagedKinds[0].Reconciler and .SubReconciler are both set`,
			},
		},
		"options": {
			config: simple.AppConfig{
				ManagedKinds: []simple.AppManagedKind{
					{Kind: widgetKind, Watcher: watcher, ReconcileOptions: simple.ReconcileOptions{
						UsePlain: true, UseOpinionated: true, MaxConcurrentReconciles: -1,
						Finalizer: "example.com/f", FinalizerAliases: []string{"example.com/g"}, InProgressFinalizer: "example.com/h",
					}},
					{Kind: gadgetV1, SubReconciler: tree, ReconcileOptions: simple.ReconcileOptions{
						Finalizer: "example.com/f", UseOpinionated: true, React: operator.ReactSpec,
						RetryPolicy:        operator.DefaultRetryPolicy,
						RetryDequeuePolicy: operator.OpinionatedRetryDequeuePolicy, OnExhausted: func(
							context.Context, resource.Object, error,
						) {
						},
					}},
				},
			},
			want: []string{
				`ManagedKinds[0].ReconcileOptions.UsePlain and .UseOpinionated are both set`,
				`ManagedKinds[0].ReconcileOptions.MaxConcurrentReconciles must not be negative`,
				`ManagedKinds[0].ReconcileOptions.Finalizer has no effect on a plain handler, an Opinionated or a SubReconciler: the app sets no finalizer for it`,
				`ManagedKinds[0].ReconcileOptions.FinalizerAliases has no effect on a plain handler, an Opinionated or a SubReconciler: the app sets no finalizer for it`,
				`ManagedKinds[0].ReconcileOptions.InProgressFinalizer has no effect on a plain handler, an Opinionated or a SubReconciler: the app sets no finalizer for it`,
				`ManagedKinds[1].ReconcileOptions.Finalizer has no effect on a plain handler, an Opinionated or a SubReconciler: the app sets no finalizer for it`,
				`ManagedKinds[1].ReconcileOptions.UseOpinionated has no effect on a SubReconciler`,
				`ManagedKinds[1].ReconcileOptions.React has no effect on a SubReconciler`,
				`ManagedKinds[1].ReconcileOptions.RetryPolicy has no effect on a SubReconciler`,
				`ManagedKinds[1].ReconcileOptions.RetryDequeuePolicy has no effect on a SubReconciler`,
				`ManagedKinds[1].ReconcileOptions.OnExhausted has no effect on a SubReconciler`,
			},
		},
		"finalizers": {
			config: simple.AppConfig{
				ManagedKinds: []simple.AppManagedKind{{Kind: widgetKind, Watcher: watcher}},
				UnmanagedKinds: []simple.AppUnmanagedKind{
					{Kind: widgetKind, Watcher: watcher, ReconcileOptions: simple.ReconcileOptions{UseOpinionated: true}},
					{
						Kind: widgetKind, Watcher: watcher,
						ReconcileOptions: simple.ReconcileOptions{UseOpinionated: true, Finalizer: "mine"},
					},
					{
						Kind: configMapKind, Watcher: watcher,
						ReconcileOptions: simple.ReconcileOptions{UseOpinionated: true, Finalizer: "mine"},
					},
				},
			},
			want: []string{
				`ManagedKinds[0] and UnmanagedKinds[0] use the same finalizer simple.example.com/it-widgets for ` +
					`Widget.simple.example.com: each must have its own, see ReconcileOptions.Finalizer`,
				`UnmanagedKinds[2].ReconcileOptions.Finalizer is "mine", which is not the name of a finalizer, such as example.com/myapp-widgets: for ` +
					`built-in kinds, it must have a domain prefix`,
			},
		},
		"converters": {
			config: simple.AppConfig{Converters: map[schema.GroupKind]simple.Converter{
				{Group: group, Kind: "A"}: nil, {Group: group, Kind: "B"}: &simple.HubConverter[*GadgetV2]{},
			}},
			want: []string{
				`Converters[A.simple.example.com] is nil`,
				`Converters[B.simple.example.com] is not valid: HubConverter must define Hub`,
			},
		},
		"custom routes": {
			config: simple.AppConfig{
				ManagedKinds: []simple.AppManagedKind{
					{Kind: widgetKind, CustomRoutes: simple.AppCustomRouteHandlers{
						{Method: "GET", Path: "goto"}: echo, {Method: "GET", Path: "/goto/"}: echo, {Method: "GET"}: echo,
						{Method: "get", Path: "lower"}: echo, {Method: "GET", Path: "nil"}: nil,
						{Method: "GET", Path: "a/../b"}: echo, {Method: "GET", Path: "status/it"}: echo,
						{Method: "GET", Path: "a{b}"}: echo,
					}},
					{Kind: configMapKind, CustomRoutes: simple.AppCustomRouteHandlers{{Method: "GET", Path: "goto"}: echo}},
				},
				VersionedCustomRoutes: map[string]simple.AppVersionRouteHandlers{
					"v1": {
						{Method: "GET", Path: "status"}: echo, {Namespaced: true, Method: "GET", Path: "status"}: echo,
						{Method: "GET", Path: "widgets/all"}: echo, {Method: "GET", Path: "namespaces/all"}: echo,
						{Method: "POST", Path: "status"}: echo,
					},
					"V2": {},
				},
			},
			want: []string{
				`ManagedKinds[0].CustomRoutes[GET ]: "" is not a path of names that are separated by slashes`,
				`ManagedKinds[0].CustomRoutes[GET a/../b]: "a/../b" is not a path of names that are separated by slashes`,
				`ManagedKinds[0].CustomRoutes[GET a{b}]: "a{b}" is not a path of names that are separated by slashes`,
				`ManagedKinds[0].CustomRoutes[GET goto] is a duplicate`,
				`ManagedKinds[0].CustomRoutes[get lower]: unknown method "get": must be one of ` +
					`["CONNECT" "DELETE" "GET" "HEAD" "OPTIONS" "PATCH" "POST" "PUT" "TRACE"]`,
				`ManagedKinds[0].CustomRoutes[GET nil]: the handler must not be nil`,
				`ManagedKinds[0].CustomRoutes[GET status/it]: the path must not begin with "status", which the API reserves`,
				`ManagedKinds[1].CustomRoutes: kinds of the core group have no custom routes`,
				`VersionedCustomRoutes has an invalid version "V2": a DNS-1035 label must consist of lower case alphanumeric ` +
					`characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  ` +
					`or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
				`VersionedCustomRoutes[v1][GET namespaces/all]: the path must not begin with "namespaces", which the API reserves`,
				`VersionedCustomRoutes[v1][GET status]: the path must not begin with "status", which the API reserves`,
				`VersionedCustomRoutes[v1][GET widgets/all]: "widgets" is the plural of Widget.v1.simple.example.com, whose objects ` +
					`are at this path`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.Name, tc.config.KubeConfig = "it", rest.Config{Host: "nowhere.invalid"}
			_, err := simple.NewApp(tc.config)
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.Split(err.Error(), "\n")
			if diff := cmp.Diff(tc.want, got[1:]); diff != "" {
				t.Errorf("mistakes (-want +got):\n%s", diff)
			}
		})
	}
}

// The options of a kind override the options of the app, and Namespaces are ignored for a cluster-scoped kind.
func TestFinalizerSupplierAndNamespaces(t *testing.T) {
	e, calls := newEnv(t), &record{}
	config := e.config("supplied")
	config.InformerConfig.InformerOptions.Namespaces = []string{"nowhere"}
	config.InformerConfig.FinalizerSupplier = func(schema resource.Schema) string {
		return "example.com/supplied-" + schema.Plural()
	}
	config.InformerConfig.RetryDequeuePolicy = operator.OpinionatedRetryDequeuePolicy
	config.ManagedKinds = []simple.AppManagedKind{
		{
			Kind: widgetKind, Reconciler: calls.reconciler(),
			ReconcileOptions: simple.ReconcileOptions{Namespace: e.Namespace, CacheResyncInterval: 100 * time.Millisecond},
		},
	}
	namespaceKind := resource.Kind{Schema: resource.NewSimpleSchema("", "v1", &corev1.Namespace{}, &corev1.NamespaceList{},
		resource.WithKind("Namespace"), resource.WithScope(resource.ClusterScope))}
	config.UnmanagedKinds = []simple.AppUnmanagedKind{{Kind: namespaceKind, Reconciler: calls.reconciler()}}
	e.start(config)
	widget := newWidget("it", "")
	e.Add(widget)
	e.Eventually(func() error { return calls.has("created it", "resynced it", "created "+e.Namespace) })
	e.Must(e.Read(widget))
	if want := []string{"example.com/supplied-widgets"}; !slices.Equal(widget.Finalizers, want) {
		t.Errorf("finalizers = %q, want %q", widget.Finalizers, want)
	}
	e.Must(e.Delete(e.Context(), widget))
	e.WaitForDeletion(widget)
}

// A kind that the API server does not serve cannot be watched.
func TestApp_NamesKindsThatAreNotServed(t *testing.T) {
	e := newEnv(t)
	config := e.config("unserved")
	type GizmoSpec struct{ Gizmo string }
	gizmo := resource.Kind{Schema: resource.NewSimpleSchema(group, "v1",
		&resource.TypedSpecObject[GizmoSpec]{}, &resource.TypedList[resource.TypedSpecObject[GizmoSpec]]{},
		resource.WithKind("Gizmo"))}
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: widgetKind, Watcher: &simple.Watcher{}}, {Kind: gizmo, Watcher: &simple.Watcher{}},
	}
	config.UnmanagedKinds = []simple.AppUnmanagedKind{
		{Kind: gizmo, Watcher: &simple.Watcher{}, ReconcileOptions: simple.ReconcileOptions{LabelFilters: []string{"a=b"}}},
		{
			Kind: widgetKind, Watcher: &simple.Watcher{},
			ReconcileOptions: simple.ReconcileOptions{LabelFilters: []string{"a=b"}},
		},
	}
	err := e.make(config).Run(e.Context())
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`ManagedKinds[1].Kind: the API server does not serve Gizmo.simple.example.com/v1; is its CustomResourceDefinition installed?`,
		`UnmanagedKinds[0].Kind: the API server does not serve Gizmo.simple.example.com/v1; is its CustomResourceDefinition installed?`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %s in it", err, want)
		}
	}
}

// An app need not be complete to be made, for example in a unit test.
func TestNewApp_Incomplete(t *testing.T) {
	watcher := &simple.Watcher{}
	opinionated := simple.ReconcileOptions{UseOpinionated: true}
	for name, tc := range map[string]struct {
		config simple.AppConfig
		made   string // the error of NewApp
		ran    string // the error of Run
	}{
		"nothing": {ran: `app "": KubeConfig.Host is required`},
		"no name": {
			config: simple.AppConfig{ManagedKinds: []simple.AppManagedKind{{Kind: widgetKind, Watcher: watcher}}},
			ran:    `app "simple.example.com": KubeConfig.Host is required`,
		},
		"no name, several groups": {
			config: simple.AppConfig{
				ManagedKinds: []simple.AppManagedKind{{Kind: widgetKind, Watcher: watcher}, {Kind: configMapKind}},
			},
			made: "invalid config of app \"\":\nName is required, because the finalizer of ManagedKinds[0] is derived from it",
		},
		"no name, no group": {
			config: simple.AppConfig{UnmanagedKinds: []simple.AppUnmanagedKind{
				{Kind: widgetKind, Watcher: watcher, ReconcileOptions: opinionated},
			}},
			made: "invalid config of app \"\":\nName is required, because the finalizer of UnmanagedKinds[0] is derived from it",
		},
		"a shard and another lease": {
			config: simple.AppConfig{
				Name: "it", Shard: &shards.Shard{}, LeaderElection: simple.LeaderElection{ID: "it"},
			},
			made: "invalid config of app \"it\":\nLeaderElection.Namespace and LeaderElection.ID must be empty with Shard, " +
				"which holds a Lease of its own",
		},
		"no name for a lease": {
			config: simple.AppConfig{LeaderElection: simple.LeaderElection{Namespace: "default"}},
			made:   `app "": the field Name or LeaderElection.ID is required, because it is the name of the lease`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.MetricsBindAddress, tc.config.HealthBindAddress = "0", "0"
			made, err := simple.NewApp(tc.config)
			if text := errorText(err); text != tc.made {
				t.Fatalf("error of NewApp = %q, want %q", text, tc.made)
			}
			if err != nil {
				return
			}
			if text := errorText(made.Run(t.Context())); text != tc.ran {
				t.Errorf("error of Run = %q, want %q", text, tc.ran)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
