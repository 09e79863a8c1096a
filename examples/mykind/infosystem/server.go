// SPDX-License-Identifier: Apache-2.0

package infosystem

import (
	"encoding/json"
	"maps"
	"net/http"
	"sync"
)

// Server is the system. It is an [http.Handler], safe for concurrent use, and ready to use as it is.
type Server struct {
	// Told is called, in order, with what the system is told. Optional.
	Told func(method, name string, info Info)

	mu      sync.Mutex
	infos   map[string]Info
	down    bool
	refused int
}

// SetDown begins or ends an outage, in which all requests are answered with 503.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Refused is how many requests were answered with an error.
func (s *Server) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Infos returns what the system has been told, by `namespace/name`.
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
		s.refuse(w, "the system is down", http.StatusServiceUnavailable)
		return
	}
	mux.ServeHTTP(w, req)
}

func (s *Server) put(w http.ResponseWriter, req *http.Request) {
	info := Info{}
	if err := json.NewDecoder(req.Body).Decode(&info); err != nil {
		s.refuse(w, err.Error(), http.StatusBadRequest)
		return
	}
	if info.SomeInfo == "" {
		s.refuse(w, "someInfo must not be empty", http.StatusUnprocessableEntity)
		return
	}
	if s.infos == nil {
		s.infos = map[string]Info{}
	}
	s.infos[name(req)] = info
	s.tell(req, info)
}

func (s *Server) delete(_ http.ResponseWriter, req *http.Request) {
	info := s.infos[name(req)]
	delete(s.infos, name(req))
	s.tell(req, info)
}

func (s *Server) refuse(w http.ResponseWriter, why string, code int) {
	s.refused++
	http.Error(w, why, code)
}

func (s *Server) tell(req *http.Request, info Info) {
	if s.Told != nil {
		s.Told(req.Method, name(req), info)
	}
}

func name(req *http.Request) string {
	return req.PathValue("namespace") + "/" + req.PathValue("name")
}
