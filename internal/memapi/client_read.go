// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (c *serverClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, key, err := c.target(obj, key, true)
	if err != nil {
		return err
	}
	r := t.objects[key]
	if r == nil {
		return t.notFound(key.Name)
	}
	if r, err = c.server.read(t, r); err != nil {
		return err
	}
	return t.respond(r, obj)
}

func (c *serverClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := c.server.tableOf(list)
	if err != nil {
		return err
	}
	var options client.ListOptions
	options.ApplyOptions(opts)
	return c.server.list(t, list, &options)
}
