// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

func TestWrong(t *testing.T) {
	assigned := map[string][]assignment{"shop": {
		{version: 10}, {version: 12, to: "a"}, {version: 20, to: "a"}, {version: 30}, {version: 32, to: "b"},
	}}
	by := func(replica string, version uint64) write {
		return write{by: replica, what: "update services shop", website: "shop", version: version}
	}
	tests := map[string]struct {
		writes []write
		want   []string
	}{
		"by the replica that has it": {writes: []write{by("a", 13), by("a", 29), by("b", 33)}},
		"the release":                {writes: []write{by("a", 30)}},
		"without an effect":          {writes: []write{by("a", 13), by("b", 13)}},
		"before it is assigned": {
			writes: []write{by("a", 11)},
			want:   []string{`a: update services shop, at version 11, when the Website was assigned to ""`},
		},
		"after the release": {
			writes: []write{by("a", 31)},
			want:   []string{`a: update services shop, at version 31, when the Website was assigned to ""`},
		},
		"by the former replica": {
			writes: []write{by("b", 33), by("a", 34)},
			want:   []string{`a: update services shop, at version 34, when the Website was assigned to "b"`},
		},
		"by the next replica": {
			writes: []write{by("b", 25)},
			want:   []string{`b: update services shop, at version 25, when the Website was assigned to "a"`},
		},
		"an unknown Website": {
			writes: []write{{by: "a", what: "create services other", website: "other", version: 13}},
			want:   []string{`a: create services other, at version 13, when the Website was assigned to ""`},
		},
		"without a version": {
			writes: []write{by("a", 0)},
			want:   []string{"a: update services shop: the answer has no version"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := (&journal{writes: tc.writes, assignments: assigned}).wrong()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected problems (-want +got):\n%s", diff)
			}
		})
	}
}

// The journal has the accepted writes of Websites and their children, and the replica gets the answers.
func TestJournal_serve(t *testing.T) {
	const site = "/apis/demo.trueup.dev/v1/namespaces/default/websites/shop"
	answer := `{"metadata":{"name":"shop","resourceVersion":"7","labels":{"demo.trueup.dev/website":"shop"}}}`
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer of the API" {
			t.Errorf("the API got the authorization %q", got)
		}
		if strings.HasSuffix(r.URL.Path, "/refused") {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = fmt.Fprint(w, answer)
	}))
	defer api.Close()
	j := &journal{}
	address, token, stop, err := j.serve(&rest.Config{Host: api.URL, BearerToken: "of the API"}, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	send := func(method, path, token string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	for _, request := range []struct{ method, path string }{
		{http.MethodPut, site + "/status"},
		{http.MethodPatch, site},
		{http.MethodPost, "/api/v1/namespaces/default/services"},
		// These are not recorded.
		{http.MethodGet, site},
		{http.MethodPatch, site + "?dryRun=All"},
		{http.MethodPut, site + "/refused"},
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"},
		{http.MethodPost, "/api/v1/namespaces/default/events"},
	} {
		if _, body := send(request.method, request.path, token); body != answer {
			t.Errorf("%s %s: got %q", request.method, request.path, body)
		}
	}
	if code, _ := send(http.MethodGet, site, "guessed"); code != http.StatusUnauthorized {
		t.Errorf("another client got the status %d", code)
	}
	want := []write{
		{by: "a", what: "update websites/status shop", website: "shop", ofStatus: true, version: 7},
		{by: "a", what: "patch websites shop", website: "shop", version: 7},
		{by: "a", what: "create services shop", website: "shop", version: 7},
	}
	if diff := cmp.Diff(want, j.writes, cmp.AllowUnexported(write{})); diff != "" {
		t.Errorf("unexpected writes (-want +got):\n%s", diff)
	}
	if got := j.reconciled("a", 0); got != 1 {
		t.Errorf("reconciled %d Websites, want 1", got)
	}
}
