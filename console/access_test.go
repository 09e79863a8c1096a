// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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
		header       string
		want         int
	}{
		{"the same machine", without, "127.0.0.1:4000", "localhost:8080", "", "", 200},
		{"the same machine with IPv6", without, "[::1]:4000", "[::1]:8080", "", "", 200},
		{"a website whose name resolves to this machine", without, "127.0.0.1:4000", "evil.example:8080", "", "", 403},
		{"the same machine, any loopback address", without, "127.0.0.1:4000", "127.8.9.1", "", "", 200},
		{"a forwarder that passes on the host", without, "127.0.0.1:4000", "10.1.2.3:8080", "", "", 403},
		{"a forwarder that passes on an IPv6 host", without, "[::1]:4000", "[fd00::1]:8080", "", "", 403},
		{"the unspecified address", without, "127.0.0.1:4000", "0.0.0.0:8080", "", "", 403},
		{"a forwarder whose client names localhost", without, "127.0.0.1:4000", "localhost", "", "X-Forwarded-For", 403},
		{"a sidecar whose client names localhost", without, "127.0.0.1:4000", "localhost", "", "X-Forwarded-Proto", 403},
		{"a proxy whose client names localhost", without, "127.0.0.1:4000", "localhost", "", "Via", 403},
		{"the passthrough of a sidecar of Istio", without, "127.0.0.6:4000", "localhost", "", "", 403},
		{"a forwarder, through a filter", withToken, "127.0.0.1:4000", "10.1.2.3:8080", "valid", "X-Forwarded-For", 200},
		{"another machine", without, "10.1.2.3:4000", "10.1.2.4:8080", "", "", 403},
		{"another machine with any token", without, "10.1.2.3:4000", "10.1.2.4:8080", "any", "", 403},
		{"another machine, through a filter", withToken, "10.1.2.3:4000", "metrics.svc:8080", "valid", "", 200},
		{"another machine without a token", withToken, "10.1.2.3:4000", "metrics.svc:8080", "", "", 401},
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
				if tc.header != "" {
					request.Header.Set(tc.header, "10.1.2.3")
				}
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

// A sidecar of a service mesh, and any other proxy in the same pod, connects from the loopback address.
func TestWhoReadsTheConsoleThroughAForwarder(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	server := httptest.NewServer(onlyPermitted(pages))
	defer server.Close()
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, rewrite := range map[string]func(*httputil.ProxyRequest){
		"with X-Forwarded-For": func(r *httputil.ProxyRequest) { r.SetURL(target); r.SetXForwarded() },
		"with the host": func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
	} {
		t.Run(name, func(t *testing.T) {
			forwarder := httptest.NewServer(&httputil.ReverseProxy{Rewrite: rewrite})
			defer forwarder.Close()
			for _, host := range []string{"10.1.2.3:8080", "[fd00::1]:8080", "0.0.0.0:8080", "console.example.com"} {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, forwarder.URL+"/console/", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				request.Host = host
				response, err := forwarder.Client().Do(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				if response.StatusCode != http.StatusForbidden {
					t.Errorf("host %s: got status %d, want 403", host, response.StatusCode)
				}
			}
		})
	}
}
