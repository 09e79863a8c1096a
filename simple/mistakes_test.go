// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"trueup.dev/informer"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

var nodeKind = resource.Kind{
	Schema: resource.NewSimpleSchema(
		"", "v1", &corev1.Node{}, &corev1.NodeList{}, resource.WithScope(resource.ClusterScope),
	),
}

// A handler that is nil behind an interface would panic when it is called for the first time.
func TestNewAppFindsHandlersThatAreNil(t *testing.T) {
	config := simple.AppConfig{
		ManagedKinds: []simple.AppManagedKind{
			{
				Kind: widgetKind, Watcher: (*simple.Watcher)(nil), Mutator: (*simple.Mutator)(nil),
				Validator: (*simple.Validator)(nil),
			},
			{Kind: gadgetV1, Reconciler: (*simple.Reconciler)(nil)},
			{Kind: gadgetV2},
		},
		UnmanagedKinds: []simple.AppUnmanagedKind{
			{Kind: widgetKind, Watcher: operator.WidenWatcher[*Widget](nil)},
			{Kind: widgetKind, Watcher: operator.WidenWatcher(operator.Untyped[*Widget](nil))},
			{Kind: widgetKind, Watcher: operator.WidenWatcher[*Widget]((*nilWatcher)(nil))},
			{Kind: widgetKind, SubReconciler: (*reconcilers.SyncReconciler[resource.Object])(nil)},
		},
		Converters: map[schema.GroupKind]simple.Converter{{Group: group, Kind: "A"}: simple.ConverterFunc(nil)},
	}
	wantMistakes(t, config, []string{
		`ManagedKinds[0].Mutator is a nil *simple.Mutator`,
		`ManagedKinds[0].Validator is a nil *simple.Validator`,
		`ManagedKinds[0].Watcher must not be nil or wrap nil`,
		`ManagedKinds[1].Reconciler must not be nil or wrap nil`,
		`UnmanagedKinds[0].Watcher must not be nil or wrap nil`,
		`UnmanagedKinds[1].Watcher must not be nil or wrap nil`,
		`UnmanagedKinds[2].Watcher must not be nil or wrap nil`,
		`UnmanagedKinds[3].SubReconciler must not be nil or wrap nil`,
		`Converters[A.simple.example.com] is nil`,
	})
}

func TestNewAppChecksWhatIsSelected(t *testing.T) {
	watcher := &simple.Watcher{}
	config := simple.AppConfig{
		InformerConfig: simple.AppInformerConfig{
			InformerOptions: informer.Options{Namespaces: []string{""}, CacheResyncInterval: -1},
		},
		ManagedKinds: []simple.AppManagedKind{{Kind: widgetKind, Watcher: watcher, ReconcileOptions: simple.ReconcileOptions{
			LabelFilters: []string{
				"a=b", "c in (",
			}, FieldSelectors: []string{"=x"}, CacheResyncInterval: -1, Namespace: "no_name",
		}}},
		UnmanagedKinds: []simple.AppUnmanagedKind{
			{Kind: nodeKind, Watcher: watcher, ReconcileOptions: simple.ReconcileOptions{Namespace: "a"}},
		},
	}
	wantMistakes(t, config, []string{
		`InformerConfig.InformerOptions.Namespaces[0]: must not be empty; to select all namespaces, leave Namespaces empty`,
		`InformerConfig.InformerOptions.CacheResyncInterval: must not be negative, got -1ns`,
		`ManagedKinds[0].ReconcileOptions.LabelFilters[1]: "c in (" is not a label selector: unable to parse requirement: found '', expected: ',', ')' or identifier`,
		`ManagedKinds[0].ReconcileOptions.FieldSelectors[0]: "=x" does not name a field`,
		`ManagedKinds[0].ReconcileOptions.CacheResyncInterval: must not be negative, got -1ns`,
		`ManagedKinds[0].ReconcileOptions.Namespace: "no_name" is not the name of a namespace: a lowercase RFC 1123 label must consist of lower case ` +
			`alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is ` +
			`'[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
		`UnmanagedKinds[0].ReconcileOptions.Namespace: must be empty, Node.v1 is cluster-scoped`,
	})
}

func TestNewAppChecksFinalizers(t *testing.T) {
	watcher := &simple.Watcher{}
	config := simple.AppConfig{
		InformerConfig: simple.AppInformerConfig{FinalizerSupplier: func(resource.Schema) string { return "orphan" }},
		ManagedKinds: []simple.AppManagedKind{
			{Kind: widgetKind, Watcher: watcher},
			{Kind: gadgetV1, Watcher: watcher, ReconcileOptions: simple.ReconcileOptions{
				Finalizer: "example.com/a", FinalizerAliases: []string{"example.com/a", ""}, InProgressFinalizer: "example.com/a",
			}},
		},
	}
	wantMistakes(t, config, []string{
		`the finalizer that InformerConfig.FinalizerSupplier returns for ManagedKinds[0] is "orphan", which is not the name of a finalizer, such as ` +
			`example.com/myapp-widgets: it is reserved by Kubernetes`,
		`ManagedKinds[1].ReconcileOptions.FinalizerAliases[0] is "example.com/a", which is the current finalizer`,
		`ManagedKinds[1].ReconcileOptions.FinalizerAliases[1] is empty`,
		`ManagedKinds[1].ReconcileOptions.InProgressFinalizer is "example.com/a", which is a duplicate of ManagedKinds[1].ReconcileOptions.Finalizer`,
	})
}

// The name of the app is part of the finalizers; an invalid name must not be reported for them, too.
func TestNewAppReportsABadNameOnce(t *testing.T) {
	_, err := simple.NewApp(simple.AppConfig{
		Name: "no name", KubeConfig: rest.Config{Host: "nowhere.invalid"}, ManagedKinds: []simple.AppManagedKind{
			{Kind: widgetKind, Watcher: &simple.Watcher{}},
		},
	})
	if err == nil || strings.Count(err.Error(), "no name") != 2 || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("error = %v, want one mistake", err)
	}
}

// wantMistakes makes an app whose name and KubeConfig are valid, and checks the problems of the rest of the config.
func wantMistakes(t *testing.T, config simple.AppConfig, want []string) {
	t.Helper()
	config.Name, config.KubeConfig = "it", rest.Config{Host: "nowhere.invalid"}
	_, err := simple.NewApp(config)
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")[1:]); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
}

// NewApp makes no request, and Run retries while the API server is unreachable.
func TestApp_WaitsForTheAPIServer(t *testing.T) {
	config := simple.AppConfig{
		Name: "it", KubeConfig: rest.Config{Host: "http://127.0.0.1:1"}, MetricsBindAddress: "0", HealthBindAddress: "0",
		ManagedKinds: []simple.AppManagedKind{
			{Kind: widgetKind, Watcher: &simple.Watcher{}, Validator: &simple.Validator{}},
		},
	}
	app, err := simple.NewApp(config)
	if err != nil {
		t.Fatalf("NewApp: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1700*time.Millisecond)
	defer cancel()
	err = app.Run(ctx)
	if err == nil || strings.Contains(err.Error(), "ManagedKinds") ||
		!strings.HasPrefix(err.Error(), `app "it": discover the kinds of the API server at http://127.0.0.1:1: `) {
		t.Errorf("error = %v", err)
	}
}

// With a wrong plural the API server would not call the webhooks.
func TestApp_ComparesKindsWithTheAPIServer(t *testing.T) {
	e := newEnv(t)
	wrong := func(options ...resource.SimpleSchemaOption) resource.Kind {
		return resource.Kind{
			Schema: resource.NewSimpleSchema(
				group, "v1", &Widget{}, &WidgetList{}, append(options, resource.WithKind("Widget"))...,
			),
		}
	}
	config := e.config("wrong")
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: wrong(resource.WithPlural("wodgets")), Validator: &simple.Validator{}},
	}
	config.UnmanagedKinds = []simple.AppUnmanagedKind{
		{Kind: wrong(resource.WithScope(resource.ClusterScope)), Watcher: &simple.Watcher{}},
	}
	err := e.make(config).Run(e.Context())
	want := `app "wrong": ManagedKinds[0].Kind: Plural is "wodgets", but the API server serves Widget.simple.example.com/v1 as "widgets"` + "\n" +
		`UnmanagedKinds[0].Kind: Scope is "Cluster", but the API server serves Widget.simple.example.com/v1 with scope "Namespaced"`
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

// nilWatcher is a watcher for Widgets.
type nilWatcher struct {
	operator.TypedWatcher[*Widget]
}

// Handlers of a kind may share an informer, which either waits for the kind or does not.
func TestNewAppFindsKindsThatMayNotBeServedForSomeHandlers(t *testing.T) {
	var calls record
	config := simple.AppConfig{UnmanagedKinds: []simple.AppUnmanagedKind{
		{Kind: widgetKind, Watcher: calls.watcher(), ReconcileOptions: simple.ReconcileOptions{WhileServed: true}},
		{Kind: nodeKind, Watcher: calls.watcher()},
		{Kind: widgetKind, Watcher: calls.watcher()},
	}}
	wantMistakes(t, config, []string{
		`UnmanagedKinds[2].ReconcileOptions.WhileServed must be true, as for UnmanagedKinds[0], which is the same kind`,
	})
}
