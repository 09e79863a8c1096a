// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ErrStopped is what Sandbox.Err returns after Sandbox.Stop.
var ErrStopped = errors.New("sandbox: stopped")

// Sandbox is a Kubernetes API to try things on: a control plane of its own, or an existing cluster. Its methods are safe for concurrent use.
type Sandbox struct {
	config     *rest.Config
	kubeconfig string
	dir        string

	process *process // nil for an existing cluster

	existingStop sync.Once
	existingDone chan struct{} // nil for a control plane of its own
}

// Start starts a control plane and returns when its API is ready, or returns an existing cluster that Options or the environment variable TRUEUP_KUBECONFIG
// names. If there is no control plane binary yet, Start builds it first, which takes minutes, but happens only once for each version.
//
// ctx bounds Start alone. The control plane runs until Stop, or until this process ends, even if that is by SIGKILL.
//
// After an error nothing is left running. Mistakes in o are all reported at once, with the names of the fields.
func Start(ctx context.Context, o Options) (*Sandbox, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	if o.Kubeconfig != "" {
		return useExisting(ctx, &o)
	}
	binary, err := findBinary(ctx, &o)
	if err != nil {
		return nil, err
	}
	display := startProgress(o.Progress, "starting the control plane", true)
	defer display.end("")
	p, ready, err := startProcess(ctx, binary, &o)
	if err != nil {
		return nil, err
	}
	config, err := loadConfig(ready.Kubeconfig)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: reading the control plane's kubeconfig: %w", err), p.stop())
	}
	return &Sandbox{config: config, kubeconfig: ready.Kubeconfig, dir: ready.Dir, process: p}, nil
}

// Build returns the absolute path of the control plane binary that Start would start with the same options, and builds it first if it is not there: to have
// that done before many tests wait for it. It returns "" if there is nothing to start, because o or the environment names an existing cluster.
func Build(ctx context.Context, o Options) (string, error) {
	if err := o.prepare(); err != nil || o.Kubeconfig != "" {
		return "", err
	}
	return findBinary(ctx, &o)
}

// loadConfig reads the current context of a kubeconfig. Client-side rate limiting is off: a test or a demo is the only client, and the API server has fair
// queueing of its own.
func loadConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// RESTConfig returns how to reach the API as an administrator, without client-side rate limiting. Each call returns a copy that the caller may change.
func (s *Sandbox) RESTConfig() *rest.Config { return rest.CopyConfig(s.config) }

// KubeconfigPath returns the absolute path of a kubeconfig file for the API, for kubectl and other programs. A control plane's own file goes with it.
func (s *Sandbox) KubeconfigPath() string { return s.kubeconfig }

// Dir returns the absolute path of the folder with the control plane's data, "" for an existing cluster.
func (s *Sandbox) Dir() string { return s.dir }

// Stop stops the control plane and returns when its process and, unless Options.Dir names it, its folder are gone. After six seconds it uses force. It
// returns what went wrong with that; that the control plane has ended by itself before is not an error of Stop, see Err. Further calls wait for the
// first and return the same. With an existing cluster, nothing is stopped; only Done is closed.
func (s *Sandbox) Stop() error {
	if s.process == nil {
		s.existingStop.Do(func() { close(s.existingDone) })
		return nil
	}
	return s.process.stop()
}

// Done returns a channel that is closed when the control plane has ended, by Stop or by itself, and its folder is removed. Nobody watches an existing
// cluster: there it is closed by Stop only.
func (s *Sandbox) Done() <-chan struct{} {
	if s.process == nil {
		return s.existingDone
	}
	return s.process.done
}

// Err returns nil before Done is closed, then ErrStopped if Stop was the reason, else an error that says how the control plane ended and what it wrote last.
func (s *Sandbox) Err() error {
	select {
	case <-s.Done():
	default:
		return nil
	}
	if s.process == nil {
		return ErrStopped
	}
	return s.process.err
}
