// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClassify(t *testing.T) {
	tests := map[string]struct {
		method, path string
		want         Write
		isWrite      bool
	}{
		"create": {
			"POST",
			"/api/v1/namespaces/default/configmaps",
			Write{"configmaps", "create"},
			true,
		},
		"update": {
			"PUT",
			"/apis/apps/v1/namespaces/default/deployments/shop",
			Write{"deployments", "update"},
			true,
		},
		"patch": {
			"PATCH",
			"/apis/demo.trueup.dev/v1/namespaces/default/websites/shop",
			Write{"websites", "patch"},
			true,
		},
		"delete": {
			"DELETE",
			"/api/v1/namespaces/default/services/shop",
			Write{"services", "delete"},
			true,
		},
		"status": {
			"PUT",
			"/apis/demo.trueup.dev/v1/namespaces/default/websites/shop/status",
			Write{"websites/status", "update"},
			true,
		},
		"cluster-scoped": {"PUT", "/api/v1/nodes/n/status", Write{"nodes/status", "update"}, true},
		"namespace":      {"POST", "/api/v1/namespaces", Write{"namespaces", "create"}, true},
		"one namespace":  {"DELETE", "/api/v1/namespaces/shop", Write{"namespaces", "delete"}, true},
		"subresource of a namespace": {
			"PUT",
			"/api/v1/namespaces/shop/finalize",
			Write{"namespaces/finalize", "update"},
			true,
		},
		"delete all": {
			"DELETE",
			"/api/v1/namespaces/default/configmaps",
			Write{"configmaps", "delete"},
			true,
		},
		"a name that is also a path segment": {
			"PUT",
			"/api/v1/namespaces/namespaces/configmaps/status",
			Write{"configmaps", "update"},
			true,
		},
		"read":        {"GET", "/api/v1/namespaces/default/configmaps", Write{}, false},
		"no resource": {"POST", "/readyz", Write{}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, isWrite := classify(httptest.NewRequest(tc.method, tc.path, nil))
			if got != tc.want || isWrite != tc.isWrite {
				t.Errorf("classify(%s %s) = %v, %t; want %v, %t", tc.method, tc.path, got, isWrite, tc.want, tc.isWrite)
			}
		})
	}
}

func TestCounter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/taken") {
			w.WriteHeader(http.StatusConflict)
		}
	}))
	defer server.Close()

	var counter Counter
	client := http.Client{Transport: counter.Wrap(http.DefaultTransport)}
	for _, call := range []string{
		"GET /api/v1/namespaces/default/services/a",
		"PUT /api/v1/namespaces/default/services/taken",
		"PUT /api/v1/namespaces/default/services/a",
		"POST /api/v1/namespaces/default/configmaps",
		"POST /apis/events.k8s.io/v1/namespaces/default/events",
		"POST /api/v1/namespaces/default/events",
	} {
		method, path, _ := strings.Cut(call, " ")
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}

	want := []Count{{Write{"configmaps", "create"}, 1}, {Write{"services", "update"}, 2}}
	if diff := cmp.Diff(want, counter.Writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if got := [3]int{counter.Total(), counter.Events(), counter.Conflicts()}; got != [3]int{3, 2, 1} {
		t.Errorf("total, events, conflicts = %v, want [3 2 1]", got)
	}
}
