// SPDX-License-Identifier: Apache-2.0

package apipath

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	apiserver "k8s.io/apiserver/pkg/endpoints/request"
)

// TestWhichPermissionDoesARequestNeed also compares with the parser of the Kubernetes API server.
func TestWhichPermissionDoesARequestNeed(t *testing.T) {
	server := &apiserver.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}
	pods := func(verb, namespace, name string) Request {
		return Request{Verb: verb, Version: "v1", Resource: "pods", Namespace: namespace, Name: name}
	}
	scale := Request{
		Verb: "patch", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "a", Name: "b",
	}
	namespaces := func(verb, name, subresource string) Request {
		return Request{Verb: verb, Version: "v1", Resource: "namespaces", Name: name, Subresource: subresource}
	}
	proxied := pods("get", "a", "b")
	proxied.Subresource, proxied.Rest = "proxy", "metrics/cadvisor"
	for request, want := range map[string]Request{
		"GET /api/v1/pods":                                       pods("list", "", ""),
		"HEAD /api/v1/pods":                                      pods("list", "", ""),
		"GET /api/v1/pods?watch":                                 pods("watch", "", ""),
		"GET /api/v1/pods?watch=true":                            pods("watch", "", ""),
		"GET /api/v1/pods?watch=1&limit=5":                       pods("watch", "", ""),
		"GET /api/v1/pods?watch=False":                           pods("list", "", ""),
		"GET /api/v1/pods?watch=0":                               pods("list", "", ""),
		"GET /api/v1/namespaces/a/pods?watch=1":                  pods("watch", "a", ""),
		"GET /api/v1/namespaces/a/pods/b":                        pods("get", "a", "b"),
		"GET /api/v1/namespaces/a/pods/b?watch=true":             pods("get", "a", "b"),
		"GET /api/v1/namespaces/a/pods/b/":                       pods("get", "a", "b"),
		"POST /api/v1/namespaces/a/pods":                         pods("create", "a", ""),
		"PUT /api/v1/namespaces/a/pods/status":                   pods("update", "a", "status"),
		"DELETE /api/v1/namespaces/a/pods/b":                     pods("delete", "a", "b"),
		"DELETE /api/v1/namespaces/a/pods?labelSelector=x":       pods("deletecollection", "a", ""),
		"GET /api/v1/namespaces/a/pods/b/proxy/metrics/cadvisor": proxied,
		"TRACE /api/v1/pods":                                     pods("", "", ""),
		"PATCH /apis/apps/v1/namespaces/a/deployments/b/scale":   scale,
		"GET /api/v1/namespaces":                                 namespaces("list", "", ""),
		"GET /api/v1/namespaces/a":                               namespaces("get", "a", ""),
		"PUT /api/v1/namespaces/a/status":                        namespaces("update", "a", "status"),
		"PUT /api/v1/namespaces/a/finalize":                      namespaces("update", "a", "finalize"),
		"GET /apis/rbac.authorization.k8s.io/v1/clusterroles/admin": {
			Verb: "get", Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Name: "admin",
		},
		"GET /":                        {},
		"GET /api":                     {},
		"GET /api/v1":                  {},
		"GET /apis/apps/v1":            {},
		"GET /version":                 {},
		"GET /openapi/v3/apis/apps/v1": {},
	} {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, "https://127.0.0.1"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := Parse(r)
		if ok != (want != Request{}) {
			t.Errorf("%s: is for objects: %v", request, ok)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", request, diff)
		}
		info, err := server.NewRequestInfo(r)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsResourceRequest != ok {
			t.Errorf("%s: the API server reports %v", request, info.IsResourceRequest)
		}
		if !ok {
			continue
		}
		known := Request{
			Verb: info.Verb, Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource,
			Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name, Rest: got.Rest,
		}
		if known.Resource == "namespaces" {
			known.Namespace = "" // the API server sets the name of the namespace
		}
		if diff := cmp.Diff(known, got); diff != "" {
			t.Errorf("%s (-API server +got):\n%s", request, diff)
		}
	}
}

func TestFullResource(t *testing.T) {
	for want, request := range map[string]Request{
		"pods": {Resource: "pods"}, "pods/status": {Resource: "pods", Subresource: "status"},
	} {
		if got := request.FullResource(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
