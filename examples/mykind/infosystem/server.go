// SPDX-License-Identifier: Apache-2.0

package infosystem

import (
	"encoding/json"
	"maps"
	"net/http"
	"sync"
)

// Server is the system. It is an [http.Handler]. The zero value is ready to use. It is safe for concurrent use.
type Server struct {
	// OnChange is called for each PUT and DELETE, in order. Optional.
	OnChange func(method, name string, info Info)

	mu       sync.Mutex
	infos    map[string]Info
	down     bool
	rejected int
}

// SetDown begins or ends an outage, in which all requests are answered with 503.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Rejected returns the number of requests that were answered with an error.
func (s *Server) Rejected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rejected
}

// Infos returns all infos by `namespace/name`.
func (s *Server) Infos() map[string]Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.infos)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /infos/{namespace}/{name}", s.put)
	mux.HandleFunc("DELETE /infos/{namespace}/{name}", s.delete)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		s.reject(w, "the system is down", http.StatusServiceUnavailable)
		return
	}
	mux.ServeHTTP(w, req)
}

func (s *Server) put(w http.ResponseWriter, req *http.Request) {
	info := Info{}
	if err := json.NewDecoder(req.Body).Decode(&info); err != nil {
		s.reject(w, err.Error(), http.StatusBadRequest)
		return
	}
	if info.SomeInfo == "" {
		s.reject(w, "someInfo must not be empty", http.StatusUnprocessableEntity)
		return
	}
	if s.infos == nil {
		s.infos = map[string]Info{}
	}
	s.infos[name(req)] = info
	s.notify(req, info)
}

func (s *Server) delete(_ http.ResponseWriter, req *http.Request) {
	info := s.infos[name(req)]
	delete(s.infos, name(req))
	s.notify(req, info)
}

func (s *Server) reject(w http.ResponseWriter, message string, code int) {
	s.rejected++
	http.Error(w, message, code)
}

func (s *Server) notify(req *http.Request, info Info) {
	if s.OnChange != nil {
		s.OnChange(req.Method, name(req), info)
	}
}

func name(req *http.Request) string {
	return req.PathValue("namespace") + "/" + req.PathValue("name")
}
