// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recorder is the client of a Cluster. It embeds no client: if controller-runtime adds a method, this type must fail to
// compile.
type recorder struct{ cluster *Cluster }

var _ client.Client = (*recorder)(nil)

func (r *recorder) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	r.cluster.reads(obj)
	if r.cluster.journal(ctx).Live() {
		err := r.cluster.live.Get(ctx, key, obj, opts...)
		r.cluster.readLive(ctx, key, obj, err)
		return err
	}
	err := r.cluster.client.Get(ctx, key, obj, opts...)
	r.cluster.inspectRead(ctx, obj, err)
	return err
}

func (r *recorder) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	r.cluster.reads(list)
	if r.cluster.journal(ctx).Live() {
		// The API server does not support the indexes of the cache.
		if err := r.cluster.live.List(ctx, list, opts...); !apierrs.IsBadRequest(err) {
			if err == nil {
				r.cluster.listedLive(ctx, list)
			}
			return err
		}
	}
	err := r.cluster.client.List(ctx, list, opts...)
	r.cluster.inspectList(ctx, list, err)
	return err
}

func (r *recorder) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	inspected := r.cluster.inspectWrite(ctx, "creates", "", obj)
	err := r.cluster.client.Create(ctx, obj, withOwner(ctx, opts)...)
	inspected(err)
	r.cluster.wrote(ctx, obj, (&client.CreateOptions{}).ApplyOptions(opts).DryRun, err)
	return err
}

func (r *recorder) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	inspected := r.cluster.inspectWrite(ctx, "updates", "", obj)
	err := r.cluster.client.Update(ctx, obj, withOwner(ctx, opts)...)
	inspected(err)
	r.cluster.wrote(ctx, obj, (&client.UpdateOptions{}).ApplyOptions(opts).DryRun, err)
	return err
}

func (r *recorder) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	inspected := r.cluster.inspectWrite(ctx, "patches", "", obj)
	err := r.cluster.client.Patch(ctx, obj, patch, withOwner(ctx, opts)...)
	inspected(err)
	r.cluster.wrote(ctx, obj, (&client.PatchOptions{}).ApplyOptions(opts).DryRun, err)
	return err
}

func (r *recorder) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	inspected := r.cluster.inspectApply(ctx, "", obj)
	err := r.cluster.client.Apply(ctx, obj, opts...)
	inspected(err)
	r.cluster.applied(ctx, obj, (&client.ApplyOptions{}).ApplyOptions(opts).DryRun, err)
	return err
}

func (r *recorder) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(opts)
	known := r.cluster.known(ctx, obj, o.Preconditions)
	inspected := r.cluster.inspectWrite(ctx, "deletes", "", obj)
	err := r.cluster.client.Delete(ctx, obj, opts...)
	inspected(err)
	r.cluster.deleted(ctx, o.DryRun, err, known)
	return err
}

func (r *recorder) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	o := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	known := r.cluster.knownOf(ctx, obj, &o.ListOptions)
	err := r.cluster.client.DeleteAllOf(ctx, obj, opts...)
	r.cluster.deleted(ctx, o.DryRun, err, known...)
	return err
}

func (r *recorder) Status() client.SubResourceWriter { return r.SubResource("status") }

func (r *recorder) SubResource(name string) client.SubResourceClient {
	return &subResourceRecorder{cluster: r.cluster, name: name, client: r.cluster.client.SubResource(name)}
}

func (r *recorder) Scheme() *runtime.Scheme     { return r.cluster.client.Scheme() }
func (r *recorder) RESTMapper() meta.RESTMapper { return r.cluster.client.RESTMapper() }
func (r *recorder) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return r.cluster.client.GroupVersionKindFor(obj)
}

func (r *recorder) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return r.cluster.client.IsObjectNamespaced(obj)
}

type subResourceRecorder struct {
	cluster *Cluster
	name    string
	client  client.SubResourceClient
}

func (r *subResourceRecorder) Get(
	ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption,
) error {
	return r.client.Get(ctx, obj, sub, opts...)
}

// Create records evictions. Other subresources that are created, tokens and bindings, do not change objects that a
// controller reads from a cache.
func (r *subResourceRecorder) Create(
	ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption,
) error {
	if r.name != "eviction" {
		return r.client.Create(ctx, obj, sub, opts...)
	}
	known := r.cluster.known(ctx, obj, nil)
	err := r.client.Create(ctx, obj, sub, opts...)
	r.cluster.deleted(ctx, (&client.SubResourceCreateOptions{}).ApplyOptions(opts).DryRun, err, known)
	return err
}

func (r *subResourceRecorder) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	inspected := r.cluster.inspectWrite(ctx, "updates", r.name, obj)
	err := r.client.Update(ctx, obj, opts...)
	inspected(err)
	o := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	r.cluster.wroteSub(ctx, obj, o.SubResourceBody, o.DryRun, err)
	return err
}

func (r *subResourceRecorder) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	inspected := r.cluster.inspectWrite(ctx, "patches", r.name, obj)
	err := r.client.Patch(ctx, obj, patch, opts...)
	inspected(err)
	o := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	r.cluster.wroteSub(ctx, obj, o.SubResourceBody, o.DryRun, err)
	return err
}

func (r *subResourceRecorder) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	inspected := r.cluster.inspectApply(ctx, r.name, obj)
	err := r.client.Apply(ctx, obj, opts...)
	inspected(err)
	r.cluster.applied(ctx, obj, (&client.SubResourceApplyOptions{}).ApplyOpts(opts).DryRun, err)
	return err
}

// wrote records a write. obj is the response of the server.
func (c *Cluster) wrote(ctx context.Context, obj client.Object, dryRun []string, err error) {
	c.wroteSub(ctx, obj, nil, dryRun, err)
}

// wroteSub records a write to a subresource of obj. The response is body, or obj if body is nil. The metadata of a body
// is that of the object.
func (c *Cluster) wroteSub(ctx context.Context, obj, body client.Object, dryRun []string, err error) {
	answer := metav1.Object(obj)
	if body != nil {
		answer = body
	}
	gvk, kindErr := c.client.GroupVersionKindFor(obj)
	if kindErr != nil {
		return
	}
	c.note(ctx, gvk.GroupKind(), client.ObjectKeyFromObject(obj), answer, dryRun, err)
}

// applied records a server-side apply. The configuration is the response of the server.
func (c *Cluster) applied(ctx context.Context, obj runtime.ApplyConfiguration, dryRun []string, err error) {
	answer := &metav1.PartialObjectMetadata{}
	if convert(obj, answer) != nil {
		return
	}
	c.note(ctx, answer.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(answer), answer, dryRun, err)
}

func (c *Cluster) note(
	ctx context.Context, kind schema.GroupKind, key client.ObjectKey, answer metav1.Object, dryRun []string, err error,
) {
	journal := c.journal(ctx)
	switch {
	case journal == nil || len(dryRun) > 0:
	case err != nil:
		if outcomeUnknown(err) {
			journal.addUncertain()
		}
	default:
		w := write{
			cluster:    c,
			kind:       kind,
			key:        key,
			uid:        answer.GetUID(),
			version:    answer.GetResourceVersion(),
			generation: answer.GetGeneration(),
		}
		if answer.GetDeletionTimestamp() != nil && len(answer.GetFinalizers()) == 0 {
			// That was the last finalizer: the object no longer exists, and the response has the previous version.
			w.effect = removed
		}
		journal.add(w)
	}
}

func (c *Cluster) deleted(ctx context.Context, dryRun []string, err error, known ...write) {
	journal := c.journal(ctx)
	switch {
	case journal == nil || len(dryRun) > 0:
	case err != nil:
		if outcomeUnknown(err) {
			journal.addUncertain()
		}
	default:
		for _, w := range known {
			if w.uid != "" {
				journal.add(w)
			}
		}
	}
}

// known returns the deletion of obj with the UID from the object itself, the preconditions, or the cache. Without a UID
// the object is not in the cache, or its kind is not read.
func (c *Cluster) known(ctx context.Context, obj client.Object, preconditions *metav1.Preconditions) write {
	if c.journal(ctx) == nil {
		return write{}
	}
	gvk, err := c.client.GroupVersionKindFor(obj)
	if err != nil {
		return write{}
	}
	w := c.deletionOf(gvk.GroupKind(), obj)
	if w.uid == "" && preconditions != nil && preconditions.UID != nil {
		w.uid = *preconditions.UID
	}
	for _, f := range c.formsOf(w.kind) {
		if w.uid != "" {
			break
		}
		if cached, ok := c.blank(f); ok && c.client.Get(ctx, w.key, cached) == nil {
			w.uid, w.version = cached.GetUID(), cached.GetResourceVersion()
		}
	}
	return w
}

func (c *Cluster) deletionOf(kind schema.GroupKind, obj client.Object) write {
	return write{
		cluster: c,
		kind:    kind,
		key:     client.ObjectKeyFromObject(obj),
		uid:     obj.GetUID(),
		version: obj.GetResourceVersion(),
		effect:  deleted,
	}
}

// knownOf returns the deletions of all objects in the cache that are like obj and that the options select.
func (c *Cluster) knownOf(ctx context.Context, obj client.Object, options *client.ListOptions) []write {
	if c.journal(ctx) == nil {
		return nil
	}
	gvk, err := c.client.GroupVersionKindFor(obj)
	if err != nil {
		return nil
	}
	known := []write{}
	for _, f := range c.formsOf(gvk.GroupKind()) {
		list, ok := c.blankList(f)
		if !ok || c.client.List(ctx, list, options) != nil {
			continue
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			if cached, ok := item.(client.Object); ok {
				if w := c.deletionOf(gvk.GroupKind(), cached); !slices.Contains(known, w) {
					known = append(known, w)
				}
			}
			return nil
		})
	}
	return known
}
