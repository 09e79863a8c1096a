// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/graph"
	"trueup.dev/graph/rbac"
	v1 "trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

type resource = v1.Resource

func inMemory() reconcilers.Config {
	return reconcilers.Config{Client: fake.NewClientBuilder().WithScheme(v1.NewScheme()).Build()}
}

// described is a reconciler that describes itself with a function.
type described func(n *graph.Node)

func (d described) DescribeTo(n *graph.Node) { d(n) }

// root describes a root of a kind, and more.
func root(describe func(n *graph.Node)) *graph.Graph {
	return graph.Of(described(func(n *graph.Node) {
		n.Root(v1.NewScheme(), &resource{}, nil)
		n.Step("Root")
		describe(n)
	}))
}

func TestDeclared(t *testing.T) {
	for name, tc := range map[string]struct {
		describe func(n *graph.Node)
		options  rbac.Options
		want     string
	}{
		"nothing": {describe: func(*graph.Node) {}},
		"resource and status": {
			describe: func(n *graph.Node) { n.ReadsResource(); n.Status(); n.Events() },
			want: `
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=fixture.trueup.dev,resources=resources,verbs=get;list;watch
// +kubebuilder:rbac:groups=fixture.trueup.dev,resources=resources/status,verbs=get;patch;update`,
		},
		"finalizer": {
			describe: func(n *graph.Node) { n.Finalizer("a/b"); n.Finalizer("a/b"); n.Finalizer("") },
			want: `
// +kubebuilder:rbac:groups=fixture.trueup.dev,resources=resources,verbs=get;list;patch;watch
// +kubebuilder:rbac:groups=fixture.trueup.dev,resources=resources/finalizers,verbs=update`,
		},
		"owned kinds with the same verbs share a rule": {
			describe: func(n *graph.Node) { n.OwnsKind(&corev1.Secret{}); n.OwnsKind(&corev1.ConfigMap{}) },
			want: `
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=create;delete;get;list;patch;update;watch
// +kubebuilder:rbac:groups=fixture.trueup.dev,resources=resources/finalizers,verbs=update`,
		},
		"subresource": {
			describe: func(n *graph.Node) { n.Needs(&corev1.Pod{}, "eviction", "create") },
			want:     "\n// +kubebuilder:rbac:groups=\"\",resources=pods/eviction,verbs=create",
		},
		"leader election": {
			describe: func(*graph.Node) {}, options: rbac.Options{LeaderElection: true},
			want: `
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create;get;update`,
		},
		"other config, not selected": {describe: withOtherConfig},
		"other config, selected": {
			describe: withOtherConfig, options: rbac.Options{Config: "Remote"},
			want: "\n// +kubebuilder:rbac:groups=\"\",resources=nodes,verbs=get;list;watch",
		},
		"irregular plural": {
			describe: func(n *graph.Node) { n.ReadsKind(&corev1.Pod{}) }, options: rbac.Options{Mapper: podsAreBeans()},
			want: "\n// +kubebuilder:rbac:groups=\"\",resources=beans,verbs=get;list;watch",
		},
	} {
		declared, err := rbac.Declared(root(tc.describe), tc.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), strings.TrimSuffix(declared.Markers(), "\n")); diff != "" {
			t.Errorf("%s: markers (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(declared, rbac.FromRules(declared.ClusterRole("a").Rules)); diff != "" {
			t.Errorf("%s: permissions of the role (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(declared.ClusterRole("a").Rules, declared.Role("b", "a").Rules); diff != "" {
			t.Errorf("%s: rules of the Role (-ClusterRole +Role):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"Remote"}, rbac.Configs(root(withOtherConfig))); diff != "" {
		t.Errorf("configs (-want +got):\n%s", diff)
	}
}

// withOtherConfig describes a part that is not the responsibility of the controller's role.
func withOtherConfig(n *graph.Node) {
	n.Nest("Reconciler", described(func(n *graph.Node) {
		n.Step("Remote")
		n.NestWithConfig("Reconciler", described(func(n *graph.Node) { n.ReadsKind(&corev1.Node{}) }))
	}))
}

func podsAreBeans() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	pods := corev1.SchemeGroupVersion
	beans, bean := pods.WithResource("beans"), pods.WithResource("bean")
	mapper.AddSpecific(pods.WithKind("Pod"), beans, bean, meta.RESTScopeNamespace)
	return mapper
}

// A kind that the scheme does not know must not be omitted silently.
func TestDeclared_UnknownKind(t *testing.T) {
	g := graph.Of(&reconcilers.SyncReconciler[*resource]{
		Name: "Pods", Sync: func(context.Context, *resource) error { return nil },
		Describe: func(n *graph.Node) { n.ReadsKind(&corev1.Pod{}) },
	})
	_, err := rbac.Declared(g, rbac.Options{})
	if err == nil || !strings.Contains(err.Error(), "rbac: Pods: the group of kind Pod is unknown") {
		t.Errorf("error %v", err)
	}
	_, err = rbac.Declared(root(func(n *graph.Node) { n.ReadsResource() }), rbac.Options{Mapper: podsAreBeans()})
	if !meta.IsNoMatchError(errors.Unwrap(unjoined(err))) {
		t.Errorf("kind unknown to the mapper: error %v", err)
	}
}

func unjoined(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()[0]
	}
	return err
}

func permission(text string) rbac.Permission {
	verb, of, _ := strings.Cut(text, " ")
	resource := schema.ParseGroupResource(of)
	return rbac.Permission{Group: resource.Group, Resource: resource.Resource, Verb: verb}
}

func permissions(texts ...string) rbac.Permissions {
	set := rbac.Permissions{}
	for _, text := range texts {
		set[permission(text)] = true
	}
	return set
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		role           []rbacv1.PolicyRule
		declared, used rbac.Permissions
		want           string
	}{
		"all equal": {
			permissions("get pods").Rules(), permissions("get pods"), permissions("get pods"), "",
		},
		"role lacks what is declared": {
			permissions("get pods").Rules(), permissions("get pods", "list pods"), nil, "not granted: list pods\n",
		},
		"role lacks what is used": {
			permissions("get pods").Rules(), nil, permissions("get pods", "update deployments/status.apps"),
			"not granted: update deployments/status.apps\n",
		},
		"never used": {
			permissions("get pods", "list pods", "patch nodes").Rules(), permissions("get pods", "list pods"),
			permissions("get pods"),
			"granted but not used: patch nodes\ngranted but not used: list pods\n" +
				"granted but neither declared nor used: patch nodes\n",
		},
		"used and not declared": {
			permissions("get pods").Rules(), permissions(), permissions("get pods"), "used but not declared: get pods\n",
		},
		"star": {
			[]rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
			permissions("get pods"), permissions("update deployments/status.apps"),
			"used but not declared: update deployments/status.apps\n",
		},
		"star of a subresource": {
			[]rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"*/status"}, Verbs: []string{"update"}}},
			permissions("update deployments/status.apps"), permissions("update deployments/scale.apps"),
			"not granted: update deployments/scale.apps\nused but not declared: update deployments/scale.apps\n" +
				"granted but not used: update */status.apps\n",
		},
		"empty role": {
			nil, permissions(), permissions("get pods"), "not granted: get pods\nused but not declared: get pods\n",
		},
	} {
		report := rbac.Check(tc.role, tc.declared, tc.used)
		if diff := cmp.Diff(tc.want, report.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if failed := report.Err() != nil; failed != (len(report.NotGranted) > 0) {
			t.Errorf("%s: error %v", name, report.Err())
		}
	}
}

func TestRecorder(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for request, want := range map[string]string{
		"GET /api/v1/pods":                                          "list pods",
		"GET /api/v1/pods?watch=true":                               "watch pods",
		"GET /api/v1/namespaces/a/pods?watch=1":                     "watch pods",
		"GET /api/v1/namespaces/a/pods/b":                           "get pods",
		"GET /api/v1/namespaces/a":                                  "get namespaces",
		"GET /api/v1/namespaces":                                    "list namespaces",
		"PUT /api/v1/namespaces/a/status":                           "update namespaces/status",
		"PUT /api/v1/namespaces/a/finalize":                         "update namespaces/finalize",
		"POST /apis/apps/v1/namespaces/a/deployments":               "create deployments.apps",
		"PATCH /apis/apps/v1/namespaces/a/deployments/b/status":     "patch deployments/status.apps",
		"DELETE /apis/apps/v1/namespaces/a/deployments/b":           "delete deployments.apps",
		"DELETE /apis/apps/v1/namespaces/a/deployments":             "deletecollection deployments.apps",
		"GET /apis/rbac.authorization.k8s.io/v1/clusterroles/admin": "get clusterroles.rbac.authorization.k8s.io",
		"GET /api":                     "",
		"GET /api/v1":                  "",
		"GET /apis/apps/v1":            "",
		"GET /version":                 "",
		"GET /openapi/v3/apis/apps/v1": "",
	} {
		recorder := &rbac.Recorder{}
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := recorder.Wrap(http.DefaultTransport).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		expected := rbac.Permissions{}
		if want != "" {
			expected = permissions(want)
		}
		if diff := cmp.Diff(expected, recorder.Used()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", request, diff)
		}
	}
}
