// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
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
)

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
