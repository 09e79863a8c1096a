// SPDX-License-Identifier: Apache-2.0

package why

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/console"
)

func TestWhichPermissionIsMissing(t *testing.T) {
	page := console.Permissions{
		User: "shop-controller", Namespaces: []string{"shop", "test"}, Missing: 2, Unused: 1, Undescribed: []string{"copier"},
		Permissions: []console.Permission{
			{
				State: console.PermissionMissing, Group: "apps", Resource: "deployments/status", Verbs: []string{"patch", "update"},
				Declared: true, Used: true, MissingIn: []string{"shop"},
			},
			{State: console.PermissionUnused, Resource: "nodes", Verbs: []string{"list"}},
			{State: console.PermissionGranted, Resource: "pods", Verbs: []string{"get"}, Used: true, NamesOnly: true},
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/console/permissions" || r.Header.Get("Accept") != "application/json" {
			t.Errorf("request to %s for %s", r.URL, r.Header.Get("Accept"))
		}
		if err := json.NewEncoder(w).Encode(page); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	var got strings.Builder
	if err := Permissions(t.Context(), &got, Options{URL: server.URL + "/console"}); err != nil {
		t.Fatal(err)
	}
	want := `Controller copier does not declare what it needs: only its calls are known.
2 missing, 1 unused, of shop-controller in shop, test

STATE    DECLARED  USED  RESOURCE                 VERBS
Missing  yes       yes   deployments/status apps  patch, update (missing in shop)
Unused   no        no    nodes                    list
Granted  no        yes   pods                     get (granted for some names of objects)
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
