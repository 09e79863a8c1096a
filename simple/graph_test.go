// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/graph"
	"trueup.dev/graph/rbac"
	"trueup.dev/simple"
)

// The graph of a program has its app, and the role has what custom routes need only if there are any.
func TestApp_GraphAndPermissions(t *testing.T) {
	const forRoutes = `// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
`
	for name, routes := range map[string]simple.AppCustomRouteHandlers{
		"without routes": nil, "with routes": {{Method: "GET", Path: "goto"}: echo},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := graph.Record(t.Context(), runtime.NewScheme(), func(_ context.Context, mgr ctrl.Manager) error {
				made, err := simple.NewApp(simple.AppConfig{
					Name: "drawn", KubeConfig: *mgr.GetConfig(), MetricsBindAddress: "0", HealthBindAddress: "0",
					ManagedKinds: []simple.AppManagedKind{{Kind: widgetKind, Watcher: &simple.Watcher{}, CustomRoutes: routes}},
				})
				if err != nil {
					return err
				}
				return mgr.Add(made)
			})
			if err != nil {
				t.Fatal(err)
			}
			declared, err := rbac.Declared(g, rbac.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := `// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
` + forRoutes + `// +kubebuilder:rbac:groups=simple.example.com,resources=widgets,verbs=get;list;patch;watch
// +kubebuilder:rbac:groups=simple.example.com,resources=widgets/finalizers,verbs=update
// +kubebuilder:rbac:groups=simple.example.com,resources=widgets/status,verbs=get;patch;update
`
			if routes == nil {
				want = strings.Replace(want, forRoutes, "", 1)
			}
			if diff := cmp.Diff(want, declared.Markers()); diff != "" {
				t.Errorf("permissions (-want +got):\n%s", diff)
			}
			if got := strings.Contains(g.Text(), "webhook /apis/"); got != (routes != nil) {
				t.Errorf("graph:\n%s", g.Text())
			}
		})
	}
}
