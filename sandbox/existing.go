// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// useExisting returns the cluster of o.Kubeconfig after one successful request to it.
func useExisting(ctx context.Context, o *Options) (*Sandbox, error) {
	name := "Options.Kubeconfig"
	if path := os.Getenv(KubeconfigVariable); path != "" && samePath(path, o.Kubeconfig) {
		name = KubeconfigVariable
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
	return &Sandbox{config: config, kubeconfig: o.Kubeconfig, existingDone: make(chan struct{})}, nil
}

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
