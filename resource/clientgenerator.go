// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClientGenerator knows the clients of kinds. Implementations must be safe for concurrent use.
//
// A generator whose clients read from a cache must be a [LiveReaderGenerator] as well.
type ClientGenerator interface {
	// ClientFor returns the client for objects of the kind.
	ClientFor(kind Kind) (Client, error)
}

// LiveReaderGenerator knows how to read past the caches of its clients.
type LiveReaderGenerator interface {
	ClientGenerator

	// LiveReaderFor returns what reads objects of the kind from the API server. It may be nil when the client does so itself.
	LiveReaderFor(kind Kind) (client.Reader, error)
}

// NewClientGenerator returns a generator that has the same client for all kinds. live reads from the API server; it may be nil when the client does so itself,
// which that of a manager does not: lists would fail.
//
// In a controller take both from its config, whose client recognises what the controller has written:
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
		return nil, errors.New("the client generator has no client")
	}
	return g.client, nil
}

func (g *oneClient) LiveReaderFor(Kind) (client.Reader, error) {
	return g.live, nil
}
