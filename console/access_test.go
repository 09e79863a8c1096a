// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestWhoMayRead(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	withToken := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	without := func(next http.Handler) http.Handler { return next }
	for _, tc := range []struct {
		name         string
		filter       func(http.Handler) http.Handler
		remote, host string
		token        string
		want         int
	}{
		{"the same machine", without, "127.0.0.1:4000", "localhost:8080", "", 200},
		{"the same machine with IPv6", without, "[::1]:4000", "[::1]:8080", "", 200},
		{"a website whose name resolves to this machine", without, "127.0.0.1:4000", "evil.example:8080", "", 403},
		{"another machine", without, "10.1.2.3:4000", "10.1.2.4:8080", "", 403},
		{"another machine with any token", without, "10.1.2.3:4000", "10.1.2.4:8080", "any", 403},
		{"another machine, through a filter", withToken, "10.1.2.3:4000", "metrics.svc:8080", "valid", 200},
		{"another machine without a token", withToken, "10.1.2.3:4000", "metrics.svc:8080", "", 401},
	} {
		for _, start := range []func(http.Handler) *httptest.Server{httptest.NewServer, httptest.NewTLSServer} {
			t.Run(tc.name, func(t *testing.T) {
				handler := tc.filter(onlyPermitted(pages))
				server := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("From-Client") != "" {
						r.RemoteAddr, r.Host = tc.remote, tc.host
					}
					handler.ServeHTTP(w, r)
				}))
				defer server.Close()
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/console/", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("From-Client", "yes")
				if tc.token != "" {
					request.Header.Set("Authorization", "Bearer "+tc.token)
				}
				response, err := server.Client().Do(request)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				if response.StatusCode != tc.want {
					t.Errorf("got status %d, want %d", response.StatusCode, tc.want)
				}
			})
		}
	}
}
