// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/call"
)

// request is a write of one object.
type request struct {
	call.Call
	obj client.Object // identifies the object, and receives the response
}

// send makes the request with a client, for an object that it may change.
func (r request) send(ctx context.Context, to client.Client, obj client.Object, dryRun bool) error {
	c := r.Call
	if dryRun {
		c.Append(client.DryRunAll)
	}
	switch config, isApply := obj.(*applied); {
	case !isApply:
		c.Object = obj
	case dryRun:
		c.Config = client.ApplyConfigurationFromUnstructured(&config.Unstructured)
	}
	return c.Do(ctx, to)
}

// write answers a request. With a dry run, the API server is asked first, and what it would store is taken over.
func (o *overlay) write(ctx context.Context, r request) error {
	events, err := o.writeLocked(ctx, r)
	return o.deliver(events, err)
}

// deliver passes events to the watches, and returns err or the first error of these.
func (o *overlay) deliver(events memEvents, err error) error {
	for _, e := range events {
		if failed := o.notify(e); failed != nil && err == nil {
			err = failed
		}
	}
	return err
}

// writeLocked is write, without the handlers of events: these may read.
func (o *overlay) writeLocked(ctx context.Context, r request) (memEvents, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gvk, err := o.kindOf(ctx, r.obj)
	if err != nil {
		return nil, err
	}
	id := objectID{gvk, client.ObjectKeyFromObject(r.obj)}
	if err := o.loadNamespace(ctx, id.key.Namespace); err != nil {
		return nil, err
	}
	if err := o.load(ctx, id); err != nil {
		return nil, err
	}
	c := o.server.Client(o.manager)
	isNew := o.server.Content(id.kind, id.key) == nil
	var answer *unstructured.Unstructured
	if o.dryRun != nil {
		if answer, err = o.ask(ctx, c, id, r); err != nil {
			return nil, err
		}
	}
	content, err := contentOf(r.obj)
	if err != nil {
		return nil, err
	}
	if err := r.send(ctx, c, r.obj, false); err != nil {
		return nil, err
	}
	id.key = client.ObjectKeyFromObject(r.obj)
	if kind, ok := o.registry.For(gvk); ok && !kind.Namespaced {
		id.key.Namespace = ""
	}
	if answer != nil {
		answer.SetName(id.key.Name)
		if err := o.server.Amend(answer, r.Subresource); err != nil {
			return nil, err
		}
		if _, applied := r.obj.(*applied); !applied {
			if err := c.Get(ctx, id.key, r.obj); err != nil {
				return nil, err
			}
		}
	}
	if isNew && r.Verb != call.Delete {
		o.sent[id] = content
	}
	return o.changed(), nil
}

// ask sends what the overlay would store to the API server as a dry run, and returns what that would store. It is nil
// if nothing changes, or if the API server cannot tell.
func (o *overlay) ask(
	ctx context.Context, c client.Client, id objectID, r request,
) (*unstructured.Unstructured, error) {
	cluster := o.loaded[id]
	if r.Verb == call.Delete {
		if cluster == nil {
			return nil, nil
		}
		return nil, o.noted(o.dryRun.delete(ctx, o.cluster, id, cluster))
	}
	if r.Subresource != "" && (r.Subresource != statusSubresource || cluster == nil) || o.isNewNamespace(id) {
		return nil, nil
	}
	attempt := r.obj.DeepCopyObject().(client.Object)
	if err := r.send(ctx, c, attempt, true); err != nil {
		return nil, err
	}
	before, source := o.server.Content(id.kind, id.key), attempt
	if before == nil { // what the overlay would allocate, such as an address, may not be valid in the cluster
		source = r.obj
	}
	content, err := contentOf(source)
	if err != nil {
		return nil, err
	}
	planned := &unstructured.Unstructured{Object: content}
	planned.SetGroupVersionKind(id.kind)
	planned.SetName(attempt.GetName()) // it may be generated
	if same(content, before) {
		return nil, nil
	}
	answer, err := o.dryRun.store(ctx, o.cluster, planned, cluster, r.Subresource)
	return answer, o.noted(err)
}

// noted keeps what a dry run cannot tell.
func (o *overlay) noted(err error) error {
	if unknown, ok := err.(unknownError); ok { //nolint:errorlint // it is never wrapped
		o.note(string(unknown))
		return nil
	}
	return err
}

// isNewNamespace reports whether the namespace of an object exists only in the overlay.
func (o *overlay) isNewNamespace(id objectID) bool {
	content, ok := o.loaded[objectID{namespaceKind, client.ObjectKey{Name: id.key.Namespace}}]
	return ok && content == nil
}

func contentOf(obj any) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	return content, json.Unmarshal(data, &content)
}

// applied is an apply configuration.
type applied struct{ unstructured.Unstructured }

// DeepCopyObject implements runtime.Object.
func (a *applied) DeepCopyObject() runtime.Object { return &applied{*a.DeepCopy()} }

func newApplied(config runtime.ApplyConfiguration) (*applied, error) {
	content, err := contentOf(config)
	if err != nil {
		return nil, err
	}
	return &applied{unstructured.Unstructured{Object: content}}, nil
}

// deleteAll deletes the selected objects one by one.
func (o *overlay) deleteAll(ctx context.Context, indexes *indexes, c *call.Call) error {
	options := (&client.DeleteAllOfOptions{}).ApplyOptions(call.Options[client.DeleteAllOfOption](c))
	gvk, err := o.plainKind(c.Object)
	if err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := o.list(ctx, indexes, list, &options.ListOptions); err != nil {
		return err
	}
	for i := range list.Items {
		found := &list.Items[i]
		found.SetGroupVersionKind(gvk)
		deletion := call.Call{Verb: call.Delete, Options: []client.DeleteOption{&options.DeleteOptions}}
		err := o.write(ctx, request{deletion, found})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
