// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"trueup.dev/controlplane/internal/controllers"
	"trueup.dev/controlplane/internal/podrunner"
)

const (
	pollInterval = 10 * time.Millisecond

	// pollTimeout limits one request, to which a starting server may not respond.
	pollTimeout = 2 * time.Second
)

// startClients waits for the API server and starts its clients: controllers and pod runner.
func (c *ControlPlane) startClients(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if err := waitUntilServing(ctx, client); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stopClients = stop

	var group *controllers.Group
	if enabled := c.options.controllers(); len(enabled) > 0 {
		config := restConfig(c.url, c.keys.ca.pem(), c.keys.controllers, "kube-controller-manager")
		if group, err = controllers.New(running, config, KubernetesVersion(), enabled, controllers.Files{
			CACertificate: c.keys.ca.file, CAKey: c.keys.ca.keyFile, ServiceAccountKey: c.keys.serviceAccountKey,
		}, c.etcd.stored); err != nil {
			return fmt.Errorf("controllers: %w", err)
		}
		c.clients.Go(func() { group.Run(running) })
	}
	var pods *podrunner.Runner
	if !c.options.DisablePods {
		config := restConfig(c.url, c.keys.ca.pem(), c.keys.podUser, "kubelet/"+KubernetesVersion())
		podClient, err := kubernetes.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		if pods, err = podrunner.New(podClient, KubernetesVersion()); err != nil {
			return fmt.Errorf("pod runner: %w", err)
		}
		c.clients.Go(func() { pods.Run(running) })
	}

	if group != nil {
		if err := group.WaitUntilSynced(ctx); err != nil {
			return fmt.Errorf("controllers: %w", err)
		}
	}
	if pods != nil {
		select {
		case <-pods.Ready():
		case <-ctx.Done():
			return fmt.Errorf("pod runner: %w", context.Cause(ctx))
		}
	}
	return nil
}

// waitUntilServing returns when the API server reports that it is ready and the namespace "default" exists.
func waitUntilServing(ctx context.Context, client kubernetes.Interface) error {
	var last error
	ready := poll(ctx, func(ctx context.Context) bool {
		body, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Raw()
		if err != nil {
			last = notReady(body, err)
			return false
		}
		_, last = client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return last == nil
	})
	if ready {
		return nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) || last == nil {
		return fmt.Errorf("kube-apiserver: %w", cause)
	}
	return fmt.Errorf("kube-apiserver: %w: %w", context.Cause(ctx), last)
}

// notReady reduces the text of /readyz to the failing checks.
func notReady(body []byte, err error) error {
	var failing []string
	for line := range strings.Lines(string(body)) {
		if check, ok := strings.CutPrefix(strings.TrimSpace(line), "[-]"); ok {
			name, _, _ := strings.Cut(check, " ")
			failing = append(failing, name)
		}
	}
	if len(failing) > 0 {
		return fmt.Errorf("failing checks: %s", strings.Join(failing, ", "))
	}
	return err
}

// poll calls condition until it returns true. It returns false if ctx ends first.
func poll(ctx context.Context, condition func(context.Context) bool) bool {
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		bounded, cancel := context.WithTimeout(ctx, pollTimeout)
		defer cancel()
		return condition(bounded), nil
	})
	return err == nil
}
