// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClientGenerator provides a client for each kind. Implementations must be safe for concurrent use.
//
// A generator whose clients read from a cache must also implement [LiveReaderGenerator].
type ClientGenerator interface {
	// ClientFor returns the client for objects of the kind.
	ClientFor(kind Kind) (Client, error)
}

// LiveReaderGenerator provides readers that bypass the caches of its clients.
type LiveReaderGenerator interface {
	ClientGenerator

	// LiveReaderFor returns a reader for objects of the kind that reads from the API server. It may return nil if the
	// client itself reads from the API server.
	LiveReaderFor(kind Kind) (client.Reader, error)
}

// NewClientGenerator returns a generator with the same client for all kinds. live must read from the API server. It may
// be nil only if the client itself does so. The client of a manager does not: with a nil reader, lists would fail.
//
// In a controller take both from its config, whose client tracks the writes of the controller:
//
//	config := reconcilers.NewConfig(mgr, &MyKind{}, syncPeriod)
//	clients := resource.NewClientGenerator(config.Client, config.APIReader)
//
// Elsewhere they are mgr.GetClient() and mgr.GetAPIReader().
func NewClientGenerator(c Client, live client.Reader) LiveReaderGenerator {
	return &oneClient{client: c, live: live}
}

type oneClient struct {
	client Client
	live   client.Reader
}

func (g *oneClient) ClientFor(Kind) (Client, error) {
	if g.client == nil {
		return nil, errors.New("client generator must have a client")
	}
	return g.client, nil
}

func (g *oneClient) LiveReaderFor(Kind) (client.Reader, error) {
	return g.live, nil
}
