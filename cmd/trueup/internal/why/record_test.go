// SPDX-License-Identifier: Apache-2.0

package why

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/console"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

// serveRecordings serves the console of a recorder that keeps objects.
func serveRecordings(t *testing.T) *httptest.Server {
	t.Helper()
	r := recorder.New(recorder.Options{Objects: true})
	created := observe.Cause{Type: observe.CauseObject, Verb: observe.Created, Kind: database, Count: 1}
	play(r, "database", types.NamespacedName{Namespace: "shop", Name: "orders"}, created, errors.New("exceeded quota"))
	play(r, "backup", types.NamespacedName{Namespace: "shop", Name: "orders"}, created, nil)
	play(r, "database", types.NamespacedName{Namespace: "shop", Name: "users"}, created, nil)
	server := httptest.NewServer(console.Handler(r))
	t.Cleanup(server.Close)
	return server
}

// TestRecord_whatDidItSee reads recordings from a console.
func TestRecord_whatDidItSee(t *testing.T) {
	o := Options{Kind: "databases", Name: "shop/orders", Controller: "database", URL: serveRecordings(t).URL}
	got, err := Record(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got.Controller != "database" || got.Object.String() != "Database shop/orders" || len(got.Runs) != 1 ||
		got.Runs[0].Error != "exceeded quota" || got.Runs[0].Calls[0].Verb != "create" {
		t.Errorf("got %+v", got)
	}
}

func TestRecord_errors(t *testing.T) {
	server, without := serveRecordings(t), serve(t)
	for _, tc := range []struct {
		name    string
		options Options
		want    string
	}{
		{"unknown object", Options{Kind: "database", Name: "other", URL: server.URL}, "know 3 objects"},
		{
			"several controllers",
			Options{Kind: "database", Name: "orders", URL: server.URL},
			"shop/orders of controller database",
		},
		{
			"a recorder without objects",
			Options{Kind: "database", Name: "weekly", Token: "valid", URL: without.URL + "/console"},
			"keeps no objects, so there are no recordings: set Objects in the options",
		},
		{"no URL", Options{}, "--url: must start with"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Record(t.Context(), tc.options); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one that contains %q", err, tc.want)
			}
		})
	}
}
