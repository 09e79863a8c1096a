// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/httpapi"
	"trueup.dev/internal/memapi/kinds"
)

// Options configure a server. The zero value is ready to use.
type Options struct {
	// Port is the port on 127.0.0.1. Default: a free port.
	Port int
	// Dir is the directory of the kubeconfig. Default: a private temporary directory that is removed at the end.
	Dir string
	// History is how many changes lists and watches can start from. Default: 10,000.
	History int64
	// DisableControllers disables the garbage collector and all other controllers.
	DisableControllers bool
	// DisablePods disables the simulated node: pods stay pending.
	DisablePods bool
	// LogOutput receives errors that no response can return: of controllers and of definitions, and panics. Default:
	// os.Stderr.
	LogOutput io.Writer
}

// stopGrace is how long running requests may take to end.
const stopGrace = time.Second

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	options Options
	config  *rest.Config
	dir     string
	private bool // the directory is removed at the end
	errors  *log.Logger
	http    *http.Server
	token   string
	host    string
	// authority is the certificate that clients trust, in PEM.
	authority []byte

	// mu guards the API, which is not safe for concurrent use, and the fields below.
	mu       sync.Mutex
	api      *memapi.Server
	registry *kinds.Registry
	// definitionsSeen is the version after the last event that updateDefinitions has seen.
	definitionsSeen int64
	changed         chan struct{} // holds a token if there may be events that the controllers have not seen
	empty           *kinds.Registry
	documents       *httpapi.Documents

	ctx     context.Context // done when the server stops
	cancel  context.CancelFunc
	running sync.WaitGroup

	stop    sync.Once
	done    chan struct{}
	stopErr error
	err     error // why it ended, set before done is closed
}

// Start starts a server, which runs until Stop is called.
func Start(o Options) (*Server, error) {
	registry, err := newRegistry()
	if err != nil {
		return nil, err
	}
	if o.History == 0 {
		o.History = 10_000
	}
	if o.LogOutput == nil {
		o.LogOutput = os.Stderr
	}
	s := &Server{
		options: o, registry: registry, empty: registry, documents: httpapi.NewDocuments(registry),
		changed: make(chan struct{}, 1), done: make(chan struct{}),
		errors: log.New(withoutHandshakes{o.LogOutput}, "the API in memory: ", 0),
	}
	s.api = memapi.New(memapi.Options{
		Registry: registry, Applier: apply.New(registry), TrackFields: true, Seed: rand.Uint64(),
		FinalizeDefinitions: true, Conversion: noConversion, Admission: definitionAdmission{s},
	})
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var config net.ListenConfig
	listener, err := config.Listen(s.ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port)))
	if err != nil {
		s.cancel()
		return nil, err
	}
	s.host = listener.Addr().String()
	if err := s.prepare(); err != nil {
		s.cancel()
		return nil, errors.Join(err, listener.Close(), s.clean())
	}
	if err := s.furnishDefault(); err != nil {
		s.cancel()
		return nil, errors.Join(err, listener.Close(), s.clean())
	}
	s.running.Go(func() { s.serve(listener) })
	s.running.Go(s.runControllers)
	return s, nil
}

// prepare creates the credentials and the kubeconfig.
func (s *Server) prepare() error {
	certificate, authority, err := newCertificate()
	if err != nil {
		return err
	}
	s.authority = authority
	if s.dir = s.options.Dir; s.dir == "" {
		removeAbandoned()
		s.private = true
		if s.dir, err = os.MkdirTemp("", dirPrefix+"*"); err != nil {
			return err
		}
	} else if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	s.token = newToken()
	if s.config, err = writeKubeconfig(s.KubeconfigPath(), "https://"+s.host, s.token, authority); err != nil {
		return err
	}
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ErrorLog: s.errors,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		BaseContext: func(net.Listener) context.Context { return s.ctx },
	}
	return nil
}

// withoutHandshakes is a log without failed TLS handshakes: these are errors of clients, which see them too.
type withoutHandshakes struct{ io.Writer }

func (w withoutHandshakes) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("http: TLS handshake error")) {
		return len(line), nil
	}
	return w.Writer.Write(line)
}

// report logs an error, if any, that no response returns.
func (s *Server) report(what string, err error) {
	if err != nil && s.ctx.Err() == nil {
		s.errors.Printf("%s: %v", what, err)
	}
}

func (s *Server) serve(listener net.Listener) {
	err := s.http.ServeTLS(listener, "", "")
	if !errors.Is(err, http.ErrServerClosed) {
		s.err = fmt.Errorf("the API in memory has ended: %w", err)
		go func() { _ = s.Stop() }()
	}
}

// Stop ends all requests and watches, and returns when nothing of the server is left. Further calls return the same
// result.
func (s *Server) Stop() error {
	s.stop.Do(func() {
		s.cancel()
		ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
		defer cancel()
		if err := s.http.Shutdown(ctx); err != nil {
			_ = s.http.Close()
		}
		s.running.Wait()
		s.stopErr = s.clean()
		close(s.done)
	})
	<-s.done
	return s.stopErr
}

func (s *Server) clean() error {
	if !s.private {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// RESTConfig returns the configuration of clients, which the caller may change.
func (s *Server) RESTConfig() *rest.Config { return rest.CopyConfig(s.config) }

// KubeconfigPath returns the absolute path of a kubeconfig.
func (s *Server) KubeconfigPath() string { return filepath.Join(s.dir, "kubeconfig") }

// Dir returns the directory of the server.
func (s *Server) Dir() string { return s.dir }

// Done is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns why the server has ended, or nil if it was stopped or runs.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}
