// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/internal/serving/loopback"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

// Options configure the console of a manager.
type Options struct {
	// Path is the path of the console on the server. The default is "/console".
	Path string
	// Address is the host and port of a server for the console alone, for example "127.0.0.1:9440". It must be a
	// loopback address. The default is the metrics server of the manager.
	Address string
	// Recorder has what the console shows. [AddToManager] adds it to the hub of the manager. The default is a recorder
	// without options.
	Recorder *recorder.Recorder
	// Namespaces are those in which the page of permissions asks what the program may do, at most 5. The default is the
	// namespaces of the recorded objects, those with trouble first, or "default" without any.
	Namespaces []string
}

const defaultPath = "/console"

// AddToManager adds a recorder to [observe.Of] the manager, and the console to the manager's metrics server or to a
// server of its own. The manager must not have started. If its metrics server is disabled, [Options.Address] is
// required: controller-runtime ignores the console otherwise.
func AddToManager(mgr manager.Manager, options Options) error {
	path := cmp.Or(options.Path, defaultPath)
	options.Path = strings.TrimSuffix(path, "/")
	if !strings.HasPrefix(options.Path, "/") {
		return fmt.Errorf("console: path %q must start with a slash and have a name", path)
	}
	if options.Recorder == nil {
		options.Recorder = recorder.New(recorder.Options{})
	}
	permissions, err := newPermissions(mgr, func() []string {
		if len(options.Namespaces) > 0 {
			return options.Namespaces
		}
		return namespacesOf(options.Recorder)
	})
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	content := newHandler(options.Recorder, permissions, mgr.Elected(), observe.Of(mgr))
	handler := onlyPermitted(http.StripPrefix(options.Path, content))
	if err := serve(mgr, options, handler); err != nil {
		return fmt.Errorf("console: %w", err)
	}
	observe.Of(mgr).Add(options.Recorder)
	permissions.record()
	return nil
}

func serve(mgr manager.Manager, options Options, handler http.Handler) error {
	if options.Address == "" {
		return mgr.AddMetricsServerExtraHandler(options.Path+"/", handler)
	}
	host, _, err := net.SplitHostPort(options.Address)
	if err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if !loopback.IsHost(options.Address) {
		return fmt.Errorf("address: %q must be a loopback address such as 127.0.0.1", host)
	}
	mux := http.NewServeMux()
	mux.Handle(options.Path+"/", handler)
	mux.Handle("/{$}", http.RedirectHandler(options.Path+"/", http.StatusFound))
	return mgr.Add(&server{options.Address, mux})
}

// server is a server for the console alone.
type server struct {
	address string
	handler http.Handler
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*server) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // ends streams
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("console: %w", err)
	}
	return nil
}
