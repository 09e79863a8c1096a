// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// serverClient is a client that reads directly from a server.
type serverClient struct {
	server *Server
	name   string
}

var _ client.WithWatch = (*serverClient)(nil)

// Client returns a client that reads from the server, without a cache. The name is the name of the client in events,
// and of the field manager of its writes unless a request sets another one.
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

func (c *serverClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	var options client.ApplyOptions
	options.ApplyOptions(opts)
	return c.apply(ctx, obj, obj, *options.AsPatchOptions(), "")
}

func (c *subresourceClient) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	var options client.SubResourceApplyOptions
	options.ApplyOpts(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	named, err := configurationOf(obj)
	if err != nil {
		return err
	}
	notAllowed, err := c.served("patch", named)
	if err != nil {
		return err
	}
	if c.subresource != statusSubresource {
		return notAllowed
	}
	return c.apply(ctx, obj, body, *options.AsPatchOptions(), c.subresource)
}

// apply applies a configuration to an object or one of its subresources.
func (c *serverClient) apply(
	ctx context.Context, obj, body runtime.ApplyConfiguration, options metav1.PatchOptions, subresource string,
) error {
	named, err := configurationOf(obj)
	if err != nil {
		return err
	}
	patch, err := configurationOf(body)
	if err != nil {
		return err
	}
	t, key, err := c.target(named, client.ObjectKeyFromObject(named), false)
	if err != nil {
		return err
	}
	applied, err := c.applyTo(ctx, t, key, patch, options, subresource)
	if err != nil {
		return err
	}
	content := applied.contents(t)
	if u, ok := body.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(runtime.DeepCopyJSON(content))
		return nil
	}
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, body)
}

func (c *serverClient) applyTo(
	ctx context.Context, t *table, key client.ObjectKey, patch *unstructured.Unstructured, options metav1.PatchOptions,
	subresource string,
) (*record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := t.needNamespace(key); err != nil {
		return nil, err
	}
	if err := validatePatchOptions(&options, types.ApplyYAMLPatchType); err != nil {
		return nil, err
	}
	return c.server.apply(
		t, key, patch, options.Force != nil && *options.Force, c.request(options.FieldManager, options.DryRun, subresource),
	)
}

// configurationOf returns the apply configuration as a client sends it.
func configurationOf(obj runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("failed to create apply request: %w", err)
	}
	content, err := decodeContent(data)
	return &unstructured.Unstructured{Object: content}, err
}

// applyData applies a configuration that has not been decoded.
func (s *Server) applyData(t *table, key client.ObjectKey, data []byte, force bool, req request) (*record, error) {
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	content, err := decodeContent(text)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return s.apply(t, key, &unstructured.Unstructured{Object: content}, force, req)
}

// validatePatchOptions refuses options that are invalid for a type of patch: only an apply can be forced, and it
// requires a manager.
func validatePatchOptions(options *metav1.PatchOptions, kind types.PatchType) error {
	if errs := metavalidation.ValidatePatchOptions(options, kind); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", errs)
	}
	return nil
}
