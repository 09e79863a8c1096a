// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// DefaultName is the name of the main config of a case.
	DefaultName = "default"
	// manager is the field manager of given objects.
	manager = "trueup-testing"
)

// Cluster is a cluster that cases run on.
type Cluster struct {
	restConfig *rest.Config

	once      sync.Once
	err       error
	http      *http.Client
	mapper    meta.RESTMapper
	discovery discovery.DiscoveryInterface
	// client is for objects that are hidden from cases.
	client client.Client
	host   *host
}

// New returns the cluster of a config, without connecting to it.
func New(config *rest.Config) *Cluster {
	return &Cluster{restConfig: config}
}

// connect creates the clients of the cluster. It sends no request.
func (c *Cluster) connect() error {
	c.once.Do(func() { c.err = c.doConnect() })
	return c.err
}

func (c *Cluster) doConnect() error {
	if c.restConfig == nil {
		return errors.New("OnCluster: the config must not be nil")
	}
	c.restConfig = rest.CopyConfig(c.restConfig)
	c.restConfig.UserAgent = manager
	c.restConfig.WarningHandler = rest.NoWarnings{}
	c.restConfig.QPS = -1 // no limit
	var err error
	if c.http, err = rest.HTTPClientFor(c.restConfig); err != nil {
		return fmt.Errorf("OnCluster: %w", err)
	}
	if c.mapper, err = apiutil.NewDynamicRESTMapper(c.restConfig, c.http); err != nil {
		return fmt.Errorf("OnCluster: %w", err)
	}
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(c.restConfig, c.http); err != nil {
		return fmt.Errorf("OnCluster: %w", err)
	}
	if c.client, err = client.New(c.restConfig, client.Options{HTTPClient: c.http, Mapper: c.mapper}); err != nil {
		return fmt.Errorf("OnCluster: %w", err)
	}
	c.host = hostOf(c.restConfig.Host)
	return nil
}

// SkipError is the reason why a case cannot run on a cluster, which is not a failure of the case.
type SkipError struct{ Reason string }

func (e *SkipError) Error() string { return e.Reason }

func skipf(format string, args ...any) error {
	return &SkipError{Reason: fmt.Sprintf(format, args...)}
}
