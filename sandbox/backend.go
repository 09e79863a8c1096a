// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"trueup.dev/sandbox/internal/backend"
)

// Backend is an implementation of the Kubernetes API.
type Backend string

const (
	// ControlPlane is a real control plane in a child process: kube-apiserver, etcd and controllers.
	ControlPlane Backend = "controlplane"
	// Memory is the API in memory, in this process. The program must import package trueup.dev/sandbox/memory, which
	// describes it.
	Memory Backend = "memory"
)

// BackendVariable is the environment variable with the default of [Options].Backend.
const BackendVariable = "TRUEUP_BACKEND"

// chooseBackend sets the backend of o if it is not set, and returns an error that lists what the backend does not have.
func (o *Options) chooseBackend() error {
	name := "Backend"
	if o.Backend == "" {
		if o.Kubeconfig != "" || o.Binary != "" {
			o.Backend = ControlPlane
			return nil
		}
		name, o.Backend = BackendVariable, Backend(os.Getenv(BackendVariable))
	}
	var errs []error
	switch o.Backend {
	case "":
		o.Backend = ControlPlane
	case ControlPlane:
	case Memory:
		if backend.Memory == nil {
			errs = append(errs, fmt.Errorf("%s: %q requires the import of trueup.dev/sandbox/memory", name, o.Backend))
		}
		if o.Binary != "" {
			errs = append(errs, fmt.Errorf("%s: %q cannot be combined with Binary", name, o.Backend))
		}
		if o.Controllers != nil && !slices.Equal(o.Controllers, []string{"none"}) {
			errs = append(errs, fmt.Errorf(
				"%s: the API in memory has all controllers, or with \"none\" no controllers", "Controllers",
			))
		}
		if o.APIServerArgs != nil || o.EmulatedVersion != "" || o.AuditLog != "" {
			errs = append(errs, errors.New("APIServerArgs, EmulatedVersion, AuditLog: the API in memory has no kube-apiserver"))
		}
	default:
		errs = append(errs, fmt.Errorf("%s: unknown backend %q; known are %q and %q", name, o.Backend, ControlPlane, Memory))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sandbox: invalid options: %w", err)
	}
	return nil
}

// startMemory starts the API in memory.
func startMemory(o *Options) (*Sandbox, error) {
	api, err := backend.Memory(backend.Options{
		Dir: o.Dir, Port: o.Port, DisableControllers: slices.Equal(o.Controllers, []string{"none"}),
		DisablePods: o.DisablePods, LogOutput: o.LogOutput,
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox: starting the API in memory: %w", err)
	}
	return &Sandbox{
		config: api.RESTConfig(), kubeconfig: api.KubeconfigPath(), dir: api.Dir(), server: memoryServer{api},
	}, nil
}

// memoryServer is the API in memory.
type memoryServer struct{ backend.API }

func (m memoryServer) stop() error { return m.Stop() }

func (m memoryServer) ended() <-chan struct{} { return m.Done() }

func (m memoryServer) reason() error {
	if err := m.Err(); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	return ErrStopped
}
