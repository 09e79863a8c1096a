// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"trueup.dev/internal/serving/loopback"
)

// onlyPermitted passes on requests to servers that are protected, and those from the same machine to other servers. The
// settings of a manager's metrics server cannot be read, so the handler requests itself without credentials: if that
// succeeds, nothing protects it.
func onlyPermitted(next http.Handler) http.Handler {
	return &access{next: next, secret: rand.Text(), protected: map[string]bool{}}
}

type access struct {
	next   http.Handler
	secret string // identifies requests of the handler to itself

	mu        sync.Mutex
	protected map[string]bool // by address of the server
}

const probeHeader = "Trueup-Console-Probe"

// ServeHTTP implements http.Handler.
func (a *access) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get(probeHeader) == a.secret:
		w.Header().Set(probeHeader, a.secret)
		w.WriteHeader(http.StatusNoContent)
	case loopback.IsLocal(r) || a.isProtected(r):
		a.next.ServeHTTP(w, r)
	default:
		http.Error(w, "This server does not check permissions, so the console is only served to the same machine or pod, at "+
			"localhost or a loopback address, and not through a proxy: use kubectl port-forward, or set FilterProvider of "+
			"the metrics server.", http.StatusForbidden)
	}
}

// isProtected reports whether the server rejects requests without credentials.
func (a *access) isProtected(r *http.Request) bool {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if protected, ok := a.protected[address.String()]; ok {
		return protected
	}
	protected, err := a.probe(r, address.String())
	if err != nil {
		return false // tried again with the next request
	}
	a.protected[address.String()] = protected
	return protected
}

func (a *access) probe(r *http.Request, address string) (protected bool, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+address+r.URL.EscapedPath(), http.NoBody)
	if err != nil {
		return false, err
	}
	request.Header.Set(probeHeader, a.secret)
	transport := &http.Transport{
		// The certificate does not matter: no credentials are sent, and the secret is only good for this.
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if alert := tls.AlertError(0); errors.As(err, &alert) {
		return true, nil // the server requires a client certificate
	} else if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	return response.Header.Get(probeHeader) != a.secret, nil
}
