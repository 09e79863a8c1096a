// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"trueup.dev/internal/memapi/httpapi"
	"trueup.dev/internal/serving/loopback"
)

// maxBody is the largest body that a server accepts.
const maxBody = 3 << 20

// ServeHTTP answers a request. Requests to the API run one after the other.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !s.trusts(req) {
		s.refuse(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	if req.Header.Get("Impersonate-User") != "" {
		s.refuse(w, httpapi.NotImplemented("has only one user"))
		return
	}
	switch req.URL.Path {
	case "/healthz", "/livez", "/readyz":
		_, _ = io.WriteString(w, "ok")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		s.refuse(w, apierrors.NewRequestEntityTooLargeError("limit is "+strconv.Itoa(maxBody)))
		return
	}
	ctx, cancel := s.limited(req)
	defer cancel()
	req = req.WithContext(ctx)
	req.Body = io.NopCloser(bytes.NewReader(body))
	response, err := s.answer(req)
	if err != nil {
		return // the client has gone
	}
	defer func() { _ = response.Body.Close() }()
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	if response.ContentLength >= 0 {
		_, _ = io.Copy(w, response.Body)
		return
	}
	s.stream(w, response.Body)
}

// answer performs a request.
func (s *Server) answer(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.api.Version()
	transport := &httpapi.Transport{
		Client: s.api.Client(managerOf(req)), Registry: s.registry, Server: s.api, Documents: s.documents,
	}
	response, err := transport.RoundTrip(req)
	if s.api.Version() != before {
		s.updateDefinitions()
		s.notify()
	}
	return response, err
}

// notify wakes the controllers.
func (s *Server) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// trusts reports whether a request has the token, and was sent to the loopback address and not through a proxy: a page
// in a browser that resolves its own name to the loopback address sends that name.
func (s *Server) trusts(req *http.Request) bool {
	token, bearer := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	host, port, err := net.SplitHostPort(req.Host)
	_, own, _ := net.SplitHostPort(s.host)
	return bearer && subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1 &&
		err == nil && port == own && (host == "localhost" || host == "127.0.0.1") && !loopback.IsForwarded(req)
}

func (s *Server) refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

// limited returns the context of a request, which ends with the server, and at the timeout of a watch.
func (s *Server) limited(req *http.Request) (context.Context, context.CancelFunc) {
	query := req.URL.Query()
	seconds, err := strconv.Atoi(query.Get("timeoutSeconds"))
	if err == nil && seconds > 0 && query.Get("watch") != "" {
		return context.WithTimeout(req.Context(), time.Duration(seconds)*time.Second)
	}
	return context.WithCancel(req.Context())
}

// stream copies the events of a watch as they come.
func (s *Server) stream(w http.ResponseWriter, events io.Reader) {
	flusher := http.NewResponseController(w)
	_ = flusher.Flush()
	buffer := make([]byte, 32<<10)
	for {
		n, err := events.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil || flusher.Flush() != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// managerOf returns the field manager of requests that do not set one, as a real server does.
func managerOf(req *http.Request) string {
	manager, _, _ := strings.Cut(req.UserAgent(), "/")
	if manager == "" {
		return "unknown"
	}
	return manager
}
