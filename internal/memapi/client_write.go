// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (c *serverClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errors.New("cannot create using only metadata")
	}
	t, err := c.server.tableOf(obj)
	if err != nil {
		return err
	}
	namespace := obj.GetNamespace()
	if t.kind.Namespaced {
		if msgs := content.IsPathSegmentName(namespace); len(msgs) > 0 {
			return fmt.Errorf("invalid namespace %q: %v", namespace, msgs)
		}
		if namespace == "" {
			return errors.New("an empty namespace may not be set during creation")
		}
	}
	var options client.CreateOptions
	options.ApplyOptions(opts)
	if err := c.server.checkSent(t, obj); err != nil {
		return err
	}
	sent, err := t.decode(obj)
	if err != nil {
		return err
	}
	created, err := c.server.create(t, namespace, sent, c.request(options.FieldManager, options.DryRun, ""))
	if err != nil {
		return err
	}
	return t.respond(created, obj)
}

func (c *serverClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errors.New("cannot update using only metadata -- did you mean to patch?")
	}
	var options client.UpdateOptions
	options.ApplyOptions(opts)
	return c.put(ctx, obj, obj, c.request(options.FieldManager, options.DryRun, ""))
}

// put replaces an object, or one of its subresources, by a body.
func (c *serverClient) put(ctx context.Context, obj, body client.Object, req request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, key, err := c.target(obj, client.ObjectKeyFromObject(obj), true)
	if err != nil {
		return err
	}
	if err := c.server.checkSent(t, body); err != nil {
		return err
	}
	sent, err := t.decode(body)
	if err != nil {
		return err
	}
	if err := matchNamespace(t, key.Namespace, sent); err != nil {
		return err
	}
	if err := matchName(key, sent); err != nil {
		return err
	}
	dropDuplicateOwners(sent)
	if t.objects[key] == nil && t.kind.CreateOnUpdate { // also by a write to its status
		if uid := sent.GetUID(); uid != "" {
			return t.otherUID(key, uid, "", req.dryRun)
		}
		created, err := c.server.createByUpdate(t, key.Namespace, sent, req)
		if err != nil {
			return err
		}
		return t.respondTo(obj, body, created)
	}
	updated, err := c.server.update(t, key, sent.GetUID(), req, func(r *record) (client.Object, error) {
		return c.server.manage(t, r, sent, req)
	})
	if err != nil {
		return err
	}
	return t.respondTo(obj, body, updated)
}

// respondTo writes the response like respond does, but the object keeps its kind.
func (t *table) respondTo(obj, body client.Object, r *record) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if err := t.respond(r, body); err != nil {
		return err
	}
	if !gvk.Empty() {
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return nil
}

func (c *serverClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	var options client.PatchOptions
	options.ApplyOptions(opts)
	return c.patch(ctx, obj, obj, patch, *options.AsPatchOptions(), "")
}

func (c *serverClient) patch(
	ctx context.Context, obj, body client.Object, patch client.Patch, options metav1.PatchOptions, subresource string,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, key, err := c.target(obj, client.ObjectKeyFromObject(obj), false)
	if err != nil {
		return err
	}
	data, err := patch.Data(body)
	if err != nil {
		return err
	}
	if err := t.needNamespace(key); err != nil {
		return err
	}
	if err := t.checkPatchType(patch.Type()); err != nil {
		return err
	}
	if err := validatePatchOptions(&options, patch.Type()); err != nil {
		return err
	}
	req := c.request(options.FieldManager, options.DryRun, subresource)
	var patched *record
	if patch.Type() == types.ApplyYAMLPatchType {
		patched, err = c.server.applyData(t, key, data, options.Force != nil && *options.Force, req)
	} else {
		patched, err = c.server.patch(t, key, patch.Type(), data, req)
	}
	if err != nil {
		return err
	}
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok { // metadata is read into the object, not into the body
		body = obj
	}
	return t.respondTo(obj, body, patched)
}

func (c *serverClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, key, err := c.target(obj, client.ObjectKeyFromObject(obj), true)
	if err != nil {
		return err
	}
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	return c.server.delete(t, key, c.name, options.AsDeleteOptions())
}

func (c *serverClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := c.server.tableOf(obj)
	if err != nil {
		return err
	}
	if isNamespace(t) {
		return t.notAllowed("delete")
	}
	var options client.DeleteAllOfOptions
	options.ApplyOptions(opts)
	return c.server.deleteAll(t, c.name, &options)
}
