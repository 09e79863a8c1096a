// SPDX-License-Identifier: Apache-2.0

// Package loopback recognizes HTTP requests that a client on the same machine or pod sends to it by a loopback address.
//
// A loopback peer alone proves nothing: a sidecar of a service mesh, or another proxy beside the server, connects from
// a loopback address on behalf of any client. Such a request has the host that the client has sent, or headers that the
// proxy has added.
package loopback

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// IsLocal reports whether a request comes from a client on the same machine, which has sent it to a loopback address or
// to localhost. A website whose name resolves to this machine is not local, though the browser that shows it is. A
// proxy that forwards bytes without a header cannot be told from a local client if its client names localhost.
func IsLocal(r *http.Request) bool {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !isMachine(remote.Addr()) {
		return false
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if at, err := netip.ParseAddrPort(local.String()); err != nil || !at.Addr().Unmap().IsLoopback() {
			return false
		}
	}
	return IsHost(r.Host) && !IsForwarded(r)
}

// isMachine reports whether clients on this machine have the address. Istio connects from 127.0.0.6.
func isMachine(remote netip.Addr) bool {
	remote = remote.Unmap()
	return remote == netip.IPv6Loopback() || remote == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// IsHost reports whether a host, with or without a port, is a loopback address or localhost.
func IsHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// IsForwarded reports whether a request has a header that proxies add.
func IsForwarded(r *http.Request) bool {
	for name := range r.Header {
		switch {
		case name == "Forwarded", name == "Via", name == "X-Real-Ip", name == "L5d-Client-Id",
			strings.HasPrefix(name, "X-Forwarded-"), strings.HasPrefix(name, "X-Envoy-"):
			return true
		}
	}
	return false
}

// Metrics returns the options of a metrics server with this address. If it is a loopback address, the server refuses
// requests that are not local, unless another FilterProvider is set.
func Metrics(bindAddress string) metricsserver.Options {
	options := metricsserver.Options{BindAddress: bindAddress}
	if IsHost(bindAddress) {
		options.FilterProvider = func(*rest.Config, *http.Client) (metricsserver.Filter, error) { return filter, nil }
	}
	return options
}

func filter(_ logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !IsLocal(r) {
			http.Error(w, "This server listens on a loopback address, so it only answers requests of the same machine or pod "+
				"that are sent to localhost or a loopback address, and not through a proxy.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}
