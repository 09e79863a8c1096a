// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/call"
	"trueup.dev/resource"
)

// later makes the calls of an app that does not exist yet.
type later struct {
	clients *Clients
	kind    resource.Kind
}

// client returns the client of the app.
func (l *later) client() client.Client {
	return call.NewClient(l, func(ctx context.Context, c call.Call) error {
		config, err := l.clients.configOf(l.kind)
		if err != nil {
			return err
		}
		return c.Do(ctx, config.Client)
	})
}

// reader returns a client of the app that reads from the API server.
func (l *later) reader() client.Reader {
	return call.NewReader(func(ctx context.Context, c call.Call) error {
		config, err := l.clients.configOf(l.kind)
		if err != nil {
			return err
		}
		return c.Read(ctx, config.APIReader)
	})
}

// Scheme returns the scheme of the app, once the app exists.
func (l *later) Scheme() *runtime.Scheme {
	if c, err := l.clients.configOf(l.kind); err == nil {
		return c.Scheme()
	}
	return l.clients.scheme
}

// RESTMapper returns an empty mapper before the app exists.
func (l *later) RESTMapper() meta.RESTMapper {
	if c, err := l.clients.configOf(l.kind); err == nil {
		return c.RESTMapper()
	}
	return meta.MultiRESTMapper{}
}

func (l *later) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	if c, err := l.clients.configOf(l.kind); err == nil {
		return c.GroupVersionKindFor(obj)
	}
	return l.clients.kindOf(obj)
}

func (l *later) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	c, err := l.clients.configOf(l.kind)
	if err != nil {
		return false, err
	}
	return c.IsObjectNamespaced(obj)
}
