// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// serverClient is a client that reads directly from a server.
type serverClient struct {
	server *Server
	name   string
}

var _ client.WithWatch = (*serverClient)(nil)

// Client returns a client that reads from the server, without a cache. The name is that of the client in events, and of
// the field manager of its writes unless a request sets another one.
func (s *Server) Client(name string) client.WithWatch {
	return &serverClient{server: s, name: name}
}

func (c *serverClient) Scheme() *runtime.Scheme {
	return c.server.registry.Scheme()
}

func (c *serverClient) RESTMapper() meta.RESTMapper {
	return c.server.registry.Mapper()
}

func (c *serverClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.Scheme())
}

func (c *serverClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, c.Scheme(), c.RESTMapper())
}

// request returns the common part of a request that writes, from its options.
func (c *serverClient) request(fieldManager string, dryRun []string, subresource string) request {
	if fieldManager == "" {
		fieldManager = c.name
	}
	return request{client: c.name, manager: fieldManager, dryRun: len(dryRun) > 0, subresource: subresource}
}

// target returns the table and the key of the object of a request. Like a real client, it refuses names that are
// invalid in a URL. Only some verbs require a namespace.
func (c *serverClient) target(
	obj runtime.Object, key client.ObjectKey, needsNamespace bool,
) (*table, client.ObjectKey, error) {
	t, err := c.server.tableOf(obj)
	if err != nil {
		return nil, key, err
	}
	if !t.kind.Namespaced {
		key.Namespace = ""
	}
	if msgs := content.IsPathSegmentName(key.Namespace); len(msgs) > 0 {
		return nil, key, fmt.Errorf("invalid namespace %q: %v", key.Namespace, msgs)
	}
	if key.Name == "" {
		return nil, key, errors.New("resource name may not be empty")
	}
	if msgs := content.IsPathSegmentName(key.Name); len(msgs) > 0 {
		return nil, key, fmt.Errorf("invalid resource name %q: %v", key.Name, msgs)
	}
	if t.kind.Namespaced && key.Namespace == "" && needsNamespace {
		return nil, key, errors.New("an empty namespace may not be set when a resource name is provided")
	}
	return t, key, nil
}
