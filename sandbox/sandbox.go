// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ErrStopped is the error that Sandbox.Err returns after Sandbox.Stop.
var ErrStopped = errors.New("sandbox: stopped")

// Sandbox is a disposable Kubernetes API: a control plane started by this package, or an existing cluster. Its methods
// are safe for concurrent use.
type Sandbox struct {
	config     *rest.Config
	kubeconfig string
	dir        string
	audit      *os.File // the audit log, if tests print it; see TestOptions.LogRequests

	server server
}

// server is what serves the API of a Sandbox.
type server interface {
	// stop ends the use of the server by the Sandbox. Every call returns the same result.
	stop() error
	// ended is closed when the Sandbox can no longer be used.
	ended() <-chan struct{}
	// reason returns why it ended. It may be called after that.
	reason() error
}

// Start starts a control plane and returns when its API is ready. If Options or the environment variable
// TRUEUP_KUBECONFIG selects an existing cluster, Start returns that cluster. If the control plane binary does not exist
// yet, Start builds it first, which takes minutes but happens only once for each version.
//
// ctx limits only the start. The control plane runs until Stop is called or this process ends, even by SIGKILL.
//
// After an error no process keeps running. The error lists all mistakes in o with the names of the fields.
func Start(ctx context.Context, o Options) (*Sandbox, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	switch {
	case o.Kubeconfig != "":
		return useExisting(ctx, &o)
	case o.Backend == Memory:
		return startMemory(&o)
	}
	if err := checkTempDir(); err != nil {
		return nil, err
	}
	binary, err := findBinary(ctx, &o)
	if err != nil {
		return nil, err
	}
	return startPrivate(ctx, binary, &o)
}

// startPrivate starts a control plane for this process alone, which inherits the files as descriptors 3 and up.
func startPrivate(ctx context.Context, binary string, o *Options, inherited ...*os.File) (*Sandbox, error) {
	display := startProgress(o.Progress, "starting the control plane", true)
	defer display.end("")
	p, ready, err := startProcess(ctx, binary, o, inherited...)
	if err != nil {
		return nil, err
	}
	return newSandbox(p, ready)
}

// newSandbox returns a Sandbox for a control plane that is ready. After an error, the control plane is stopped.
func newSandbox(running server, ready readyLine) (*Sandbox, error) {
	config, err := loadConfig(ready.Kubeconfig)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: reading the control plane's kubeconfig: %w", err), running.stop())
	}
	return &Sandbox{config: config, kubeconfig: ready.Kubeconfig, dir: ready.Dir, server: running}, nil
}

// Build returns the absolute path of the control plane binary that Start would start with the same options. It builds
// the binary if it does not exist, for example before many tests wait for it. Build returns "" if o or the environment
// selects an existing cluster or the API in memory.
func Build(ctx context.Context, o Options) (string, error) {
	if err := o.prepare(); err != nil || o.Kubeconfig != "" || o.Backend == Memory {
		return "", err
	}
	return findBinary(ctx, &o)
}

// CachedBinary is the place of a control plane binary in the user's cache.
type CachedBinary struct {
	// Key identifies the binary: its version or, for a checkout, its source, and the platform. A CI system can store and
	// restore the directory under this key.
	Key string

	// Dir is the absolute path of the directory to store. It contains nothing else. It may not exist yet.
	Dir string
}

// Cached returns the place of the binary that Start uses if neither Options.Binary nor TRUEUP_CONTROLPLANE is set. It
// builds nothing. The version is determined as for Start, which may run the go command in the working directory.
func Cached(ctx context.Context) (CachedBinary, error) {
	_, path, err := locateCached(ctx)
	if err != nil {
		return CachedBinary{}, err
	}
	dir := filepath.Dir(path)
	return CachedBinary{Key: filepath.Base(dir), Dir: dir}, nil
}

// loadConfig reads the current context of a kubeconfig. Client-side rate limiting is disabled: a test or a demo is the
// only client, and the API server has its own fair queueing.
func loadConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// RESTConfig returns a configuration with administrator rights and without client-side rate limiting. Each call returns
// a copy that the caller may change.
func (s *Sandbox) RESTConfig() *rest.Config { return rest.CopyConfig(s.config) }

// KubeconfigPath returns the absolute path of a kubeconfig file for the API, for kubectl and other programs. The file
// of a control plane is removed with its directory.
func (s *Sandbox) KubeconfigPath() string { return s.kubeconfig }

// Dir returns the absolute path of the directory with the control plane's data, "" for an existing cluster.
func (s *Sandbox) Dir() string { return s.dir }

// Stop stops the control plane and returns when its process has ended and its directory is removed, unless Options.Dir
// is set. After six seconds it kills the process. It returns an error if stopping or removing fails. If the control
// plane has already ended by itself, Stop returns nil, see Err. Further calls wait for the first and return the same
// result. With an existing cluster, Stop only closes Done.
func (s *Sandbox) Stop() error { return s.server.stop() }

// Done returns a channel that is closed when the control plane has ended, by Stop or by itself, and its directory is
// removed. For an existing cluster it is closed only by Stop.
func (s *Sandbox) Done() <-chan struct{} { return s.server.ended() }

// Err returns nil until Done is closed. Then it returns ErrStopped if Stop was called, otherwise an error with the exit
// status of the control plane and its last output.
func (s *Sandbox) Err() error {
	select {
	case <-s.Done():
	default:
		return nil
	}
	return s.server.reason()
}
