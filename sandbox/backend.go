// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

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

// envtestVariable is the environment variable with which envtest uses an existing cluster.
const envtestVariable = "USE_EXISTING_CLUSTER"

// existingByVariable returns the path of the kubeconfig that an environment variable selects, or "". The variable of
// envtest selects the file that kubectl uses, but only in a test binary: it must not make another program, such as a
// demo, use the user's cluster.
func existingByVariable() (string, error) {
	if path := os.Getenv(KubeconfigVariable); path != "" {
		return path, nil
	}
	if !testing.Testing() || !strings.EqualFold(os.Getenv(envtestVariable), "true") {
		return "", nil
	}
	if list := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); list != "" {
		paths := slices.DeleteFunc(filepath.SplitList(list), func(path string) bool { return path == "" })
		if len(paths) != 1 {
			return "", fmt.Errorf(
				"sandbox: %s is set, and KUBECONFIG must name one file, got %q; or set %s to a file",
				envtestVariable, list, KubeconfigVariable,
			)
		}
		return paths[0], nil
	}
	return clientcmd.RecommendedHomeFile, nil
}

// useExisting returns the cluster of o.Kubeconfig after one successful request to it.
func useExisting(ctx context.Context, o *Options) (*Sandbox, error) {
	name := "Options.Kubeconfig"
	if path, err := existingByVariable(); err == nil && path != "" && samePath(path, o.Kubeconfig) {
		name = envtestVariable
		if os.Getenv(KubeconfigVariable) != "" {
			name = KubeconfigVariable
		}
	}
	config, err := loadConfig(o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("sandbox: the kubeconfig %s (%s) cannot be used: %w", o.Kubeconfig, name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.StartTimeout)
	defer cancel()
	if err := reach(ctx, config); err != nil {
		return nil, fmt.Errorf(
			"sandbox: the cluster %s of the kubeconfig %s (%s) cannot be used: %w", config.Host, o.Kubeconfig, name, err,
		)
	}
	return &Sandbox{config: config, kubeconfig: o.Kubeconfig, server: &existingCluster{done: make(chan struct{})}}, nil
}

// existingCluster is a cluster that was not started here. It does not end.
type existingCluster struct {
	once sync.Once
	done chan struct{}
}

func (e *existingCluster) stop() error {
	e.once.Do(func() { close(e.done) })
	return nil
}

func (e *existingCluster) ended() <-chan struct{} { return e.done }

func (e *existingCluster) reason() error { return ErrStopped }

// reach sends a request that needs valid credentials but no permission.
func reach(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return err
	}
	return client.Get().AbsPath("/api").Do(ctx).Error()
}
