// SPDX-License-Identifier: Apache-2.0

package loopback_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/go-logr/logr"

	"trueup.dev/internal/serving/loopback"
)

func TestWhichHostsAreThisMachine(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:8080": true, "LocalHost:1": true, "127.0.0.1": true, "127.0.0.1:8080": true,
		"127.9.9.9:8080": true, "::1": true, "[::1]": true, "[::1]:8080": true, "[::ffff:127.0.0.1]:80": true,
		"": false, ":8080": false, "0.0.0.0": false, "0.0.0.0:8080": false, "[::]:8080": false, "10.1.2.3:8080": false,
		"[fd00::1]": false, "[fd00::1]:8080": false, "localhost.example.com": false, "127.0.0.1.nip.io": false,
		"localhost.": false, "[::1%eth0]:80": false, "0": false,
	} {
		if got := loopback.IsHost(host); got != want {
			t.Errorf("IsHost(%q): got %v, want %v", host, got, want)
		}
	}
}

func TestWhoReadsTheMetricsOnLoopback(t *testing.T) {
	if loopback.Metrics(":8080").FilterProvider != nil || loopback.Metrics("0").FilterProvider != nil {
		t.Error("a server for other machines has a filter")
	}
	provide := loopback.Metrics("127.0.0.1:8080").FilterProvider
	if provide == nil {
		t.Fatal("no filter")
	}
	filter, err := provide(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "metrics")
	}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	forwarder := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.SetXForwarded()
	}})
	defer forwarder.Close()
	for _, tc := range []struct {
		name, url, host string
		want            int
	}{
		{"the same machine", server.URL, "", http.StatusOK},
		{"the same machine by name", server.URL, net.JoinHostPort("localhost", target.Port()), http.StatusOK},
		{"a website whose name resolves to this machine", server.URL, "evil.example", http.StatusForbidden},
		{"a forwarder", forwarder.URL, "", http.StatusForbidden},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tc.url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = tc.host
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != tc.want {
				t.Errorf("got status %d, want %d", response.StatusCode, tc.want)
			}
		})
	}
}
