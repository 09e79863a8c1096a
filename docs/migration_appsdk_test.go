// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"

	"trueup.dev/app"
	"trueup.dev/informer"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

// region migration-app-sdk-aliases
func WidgetKind(kind resource.Kind, watcher *simple.Watcher) simple.AppManagedKind {
	return simple.AppManagedKind{
		Kind:    kind,
		Watcher: watcher,
		ReconcileOptions: simple.ReconcileOptions{
			FinalizerAliases: []string{"myapp-widgets-finalizer", "myapp-wip"},
		},
	}
}

// endregion

// region migration-app-sdk-old-finalizer
// OldWidgetKind has the names of the App SDK. Its objects can be handled by a program of the App SDK at any time.
func OldWidgetKind(kind resource.Kind, watcher *simple.Watcher) simple.AppManagedKind {
	return simple.AppManagedKind{
		Kind:    kind,
		Watcher: watcher,
		ReconcileOptions: simple.ReconcileOptions{
			Finalizer: "myapp-widgets-finalizer",
			// The former names: the default of trueup, if an earlier version used it, and the second name of the App SDK.
			FinalizerAliases: []string{"example.com/myapp-widgets", "myapp-wip"},
		},
	}
}

// endregion

// region migration-app-sdk-workers
func TenWorkers(kind simple.AppManagedKind) simple.AppManagedKind {
	kind.ReconcileOptions.MaxConcurrentReconciles = 10 // the default of the App SDK
	return kind
}

// endregion

// region migration-app-sdk-opinionated
func OwnFinalizer(
	kind resource.Kind, watcher operator.ResourceWatcher, reconciler operator.Reconciler,
) []simple.AppManagedKind {
	return []simple.AppManagedKind{
		{Kind: kind, Watcher: operator.OpinionatedWatcher("example.com/mine", watcher)},
		{
			Kind:       kind,
			Reconciler: &operator.OpinionatedReconciler{Finalizer: "example.com/mine", Reconciler: reconciler},
		},
	}
}

// endregion

// region migration-app-sdk-kinds
type (
	IssueSpec struct {
		Title  string    `json:"title"`
		Labels CommaList `json:"labels,omitempty"`
	}
	IssueStatus struct {
		ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	}
	Issue     = resource.TypedSpecStatusObject[IssueSpec, IssueStatus]
	IssueList = resource.TypedList[Issue]

	BoardSpec struct {
		Columns []string `json:"columns,omitempty"`
	}
	Board     = resource.TypedSpecObject[BoardSpec]
	BoardList = resource.TypedList[Board]
)

// IssueKind returns the kind. It replaces the generated function of that name.
func IssueKind() resource.Kind {
	return resource.Kind{
		Schema: resource.NewSimpleSchema("tracker.example.com", "v1", &Issue{}, &IssueList{}, resource.WithKind("Issue")),
	}
}

// BoardKind returns a kind that is managed and has no handler.
func BoardKind() resource.Kind {
	return resource.Kind{
		Schema: resource.NewSimpleSchema("tracker.example.com", "v1", &Board{}, &BoardList{}, resource.WithKind("Board")),
	}
}

// endregion

// region migration-app-sdk-codec
// CommaList is stored as one string. It replaces a codec.
type CommaList []string

func (l CommaList) MarshalJSON() ([]byte, error) { return json.Marshal(strings.Join(l, ",")) }

func (l *CommaList) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*l = strings.Split(text, ",")
	return nil
}

// endregion

// region migration-app-sdk-routes
// TitleRoute is a route of an Issue: GET /apis/tracker.example.com/v1/namespaces/<namespace>/issues/<name>/title.
func TitleRoute(issues *resource.TypedStore[*Issue]) simple.AppCustomRouteHandlers {
	return simple.AppCustomRouteHandlers{
		{Method: simple.AppCustomRouteMethodGet, Path: "title"}: func(
			ctx context.Context, w app.CustomRouteResponseWriter, req *app.CustomRouteRequest,
		) error {
			issue, err := issues.Get(ctx, req.ResourceIdentifier.Identifier())
			if err != nil {
				return err // NotFound is 404
			}
			return json.NewEncoder(w).Encode(map[string]string{"title": issue.Spec.Title})
		},
	}
}

// SummaryRoute is a route of a version: GET /apis/tracker.example.com/v1/namespaces/<namespace>/summary.
func SummaryRoute(issues *resource.TypedStore[*Issue]) map[string]simple.AppVersionRouteHandlers {
	return map[string]simple.AppVersionRouteHandlers{"v1": {
		{Namespaced: true, Method: simple.AppCustomRouteMethodGet, Path: "summary"}: func(
			ctx context.Context, w app.CustomRouteResponseWriter, req *app.CustomRouteRequest,
		) error {
			list, err := issues.List(ctx, resource.StoreListOptions{Namespace: req.ResourceIdentifier.Namespace})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(w, "%d issues", len(list.Items))
			return err
		},
	}}
}

// endregion

// region migration-app-sdk-app
// TrackerConfig is the specific config of the app.
type TrackerConfig struct {
	Namespaces []string
	Watcher    operator.ResourceWatcher
}

func NewTracker(config app.Config) (app.App, error) {
	specific := config.SpecificConfig.(TrackerConfig)
	clients := &simple.Clients{} // was a ClientRegistry
	issues, err := resource.NewTypedStore[*Issue](IssueKind(), clients)
	if err != nil {
		return nil, err
	}
	return simple.NewApp(simple.AppConfig{
		Name:       config.ManifestData.AppName,
		KubeConfig: config.KubeConfig,
		Clients:    clients,
		InformerConfig: simple.AppInformerConfig{
			InformerOptions: informer.Options{Namespaces: specific.Namespaces},
		},
		ManagedKinds: []simple.AppManagedKind{
			{
				Kind: IssueKind(), Watcher: specific.Watcher, Validator: &simple.Validator{ValidateFunc: validateIssue},
				CustomRoutes: TitleRoute(issues),
			},
			{Kind: BoardKind()}, // without a handler
		},
		VersionedCustomRoutes: SummaryRoute(issues),
		// The Runner serves these.
		MetricsBindAddress: "0",
		HealthBindAddress:  "0",
	})
}

func validateIssue(_ context.Context, req *app.AdmissionRequest) error {
	if issue, ok := req.Object.(*Issue); ok && issue.Spec.Title == "" {
		return fmt.Errorf("an issue needs a title")
	}
	return nil
}

// endregion

// region migration-app-sdk-main
func RunTracker(ctx context.Context, config operator.RunnerConfig, specific TrackerConfig) error {
	runner, err := operator.NewRunner(config)
	if err != nil {
		return err
	}
	return runner.Run(ctx, simple.NewAppProvider(TrackerManifest(), specific, NewTracker))
}

func TrackerManifest() app.ManifestData {
	return app.ManifestData{AppName: "tracker", Group: "tracker.example.com", Versions: []app.ManifestVersion{{
		Name: "v1", Served: true, Kinds: []app.ManifestVersionKind{
			{
				Kind: "Issue",
				Admission: &app.AdmissionCapabilities{
					Validation: &app.AdmissionCapability{Operations: []app.AdmissionAction{app.AdmissionActionCreate}},
				},
				Routes: map[string]spec3.PathProps{"/title": {Get: &spec3.Operation{}}},
			},
			{Kind: "Board"},
		},
		Routes: app.ManifestVersionRoutes{
			Namespaced: map[string]spec3.PathProps{"/summary": {Get: &spec3.Operation{}}},
		},
	}}}
}

// endregion

// region migration-app-sdk-route-client
// RouteClient returns a client for the custom routes of the app. It replaces generated clients.
func RouteClient() (rest.Interface, error) {
	return NewRouteClient(&rest.Config{
		Host:            "https://tracker-webhooks.tracker.svc",
		TLSClientConfig: rest.TLSClientConfig{CAFile: "/etc/tracker/ca.crt"},
		BearerTokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token",
	})
}

func NewRouteClient(config *rest.Config) (rest.Interface, error) {
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}

// TitleOf calls the route of an Issue.
func TitleOf(ctx context.Context, routes rest.Interface, issue resource.Identifier) (string, error) {
	const namespaces = "/apis/tracker.example.com/v1/namespaces"
	data, err := routes.Get().AbsPath(namespaces, issue.Namespace, "issues", issue.Name, "title").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var response struct{ Title string }
	err = json.Unmarshal(data, &response)
	return response.Title, err
}

// endregion
