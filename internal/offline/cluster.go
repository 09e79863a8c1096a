// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// Cluster is a cluster without an API server. Its methods return its fields.
type Cluster struct {
	Scheme    *runtime.Scheme
	Mapper    meta.RESTMapper
	Client    client.Client
	APIReader client.Reader
	// Cache is also the field indexer.
	Cache cache.Cache
	// Recorder defaults to a recorder that discards events.
	Recorder record.EventRecorder
}

var _ cluster.Cluster = (*Cluster)(nil)

// GetScheme implements [cluster.Cluster].
func (c *Cluster) GetScheme() *runtime.Scheme { return c.Scheme }

// GetRESTMapper implements [cluster.Cluster].
func (c *Cluster) GetRESTMapper() meta.RESTMapper { return c.Mapper }

// GetClient implements [cluster.Cluster].
func (c *Cluster) GetClient() client.Client { return c.Client }

// GetAPIReader implements [cluster.Cluster].
func (c *Cluster) GetAPIReader() client.Reader { return c.APIReader }

// GetCache implements [cluster.Cluster].
func (c *Cluster) GetCache() cache.Cache { return c.Cache }

// GetFieldIndexer implements [cluster.Cluster].
func (c *Cluster) GetFieldIndexer() client.FieldIndexer { return c.Cache }

// GetEventRecorderFor implements [cluster.Cluster].
func (c *Cluster) GetEventRecorderFor(string) record.EventRecorder {
	if c.Recorder == nil {
		return &record.FakeRecorder{}
	}
	return c.Recorder
}

// GetEventRecorder implements [cluster.Cluster]. The recorder discards events.
func (c *Cluster) GetEventRecorder(string) recorder.EventRecorder { return &events.FakeRecorder{} }

// GetHTTPClient implements [cluster.Cluster]. All requests fail.
func (c *Cluster) GetHTTPClient() *http.Client { return &http.Client{Transport: noServer{}} }

// GetConfig implements [cluster.Cluster]. All requests of clients with this config fail.
func (c *Cluster) GetConfig() *rest.Config {
	return &rest.Config{Host: "http://offline.invalid", Transport: noServer{}}
}

// Start implements [cluster.Cluster]. It only waits until the context is done.
func (c *Cluster) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

type noServer struct{}

func (noServer) RoundTrip(request *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf(
		"%s %s: this manager has no API server: use its clients", request.Method, request.URL.Path,
	)
}
