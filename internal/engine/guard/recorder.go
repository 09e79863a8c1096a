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

	"trueup.dev/internal/call"
)

// Client returns a client that records writes in the journals, and bypasses the cache for requests that must read live.
// It makes no writes while the cluster is fenced.
func (c *Cluster) Client() client.Client { return call.NewClient(c.client, c.do) }

// thirdPerson has the verbs of writes of objects as changes describe them.
var thirdPerson = map[call.Verb]string{
	call.Create: "creates", call.Update: "updates", call.Patch: "patches", call.Delete: "deletes",
}

func (c *Cluster) do(ctx context.Context, r call.Call) error {
	isSub := r.OfSubresource()
	if !r.IsRead() {
		if err := c.fenced(); err != nil {
			return err
		}
	}
	switch {
	case r.IsRead() && !isSub:
		return c.read(ctx, &r)
	case r.Verb == call.Apply:
		inspected := c.inspectApply(ctx, r.Subresource, r.Config)
		err := c.send(ctx, &r)
		inspected(err)
		c.applied(ctx, r.Config, r.DryRun(), err)
		return err
	case r.Verb == call.Delete, r.Verb == call.DeleteAllOf, r.Verb == call.Create && r.Subresource == "eviction":
		return c.delete(ctx, &r)
	case r.IsRead(), r.Verb == call.Create && isSub:
		// What else is created as a subresource, a token or a binding, does not change an object that a controller reads
		// from a cache.
		return c.send(ctx, &r)
	}
	if r.Verb == call.Update && !isSub {
		if err := c.restore(ctx, r.Object); err != nil {
			return err
		}
	}
	inspected := c.inspectWrite(ctx, thirdPerson[r.Verb], r.Subresource, r.Object)
	if owner := ctx.Value(fieldOwnerKey{}); owner != nil && !isSub {
		r.Prepend(owner)
	}
	err := c.send(ctx, &r)
	inspected(err)
	c.wrote(ctx, r.Object, r.Written(), r.DryRun(), err)
	return err
}

// send sends a request. A write is refused if the cluster is fenced by now: the reads before it may have taken long.
func (c *Cluster) send(ctx context.Context, r *call.Call) error {
	if !r.IsRead() {
		if err := c.fenced(); err != nil {
			return err
		}
	}
	return r.Do(ctx, c.client)
}

func (c *Cluster) read(ctx context.Context, r *call.Call) error {
	c.reads(r.Subject())
	if c.journal(ctx).Live() {
		err := r.Read(ctx, c.live)
		switch {
		case r.Verb == call.Get:
			c.readLive(ctx, r.Key, r.Object, err)
			return err
		case !apierrs.IsBadRequest(err): // otherwise, the list has used an index of the cache
			if err == nil {
				c.listedLive(ctx, r.List)
			}
			return err
		}
	}
	err := r.Do(ctx, c.client)
	if r.Verb == call.Get {
		c.inspectRead(ctx, r.Object, err)
	} else {
		c.inspectList(ctx, r.List, err)
	}
	return err
}

// delete makes a call that deletes one or all objects, or evicts a pod.
func (c *Cluster) delete(ctx context.Context, r *call.Call) error {
	inspected := notInspected
	var known []write
	switch r.Verb {
	case call.DeleteAllOf:
		options := (&client.DeleteAllOfOptions{}).ApplyOptions(call.Options[client.DeleteAllOfOption](r))
		known = c.knownOf(ctx, r.Object, &options.ListOptions)
	case call.Delete:
		options := (&client.DeleteOptions{}).ApplyOptions(call.Options[client.DeleteOption](r))
		known = []write{c.known(ctx, r.Object, options.Preconditions)}
		inspected = c.inspectWrite(ctx, thirdPerson[r.Verb], "", r.Object)
	default:
		known = []write{c.known(ctx, r.Object, nil)}
	}
	err := c.send(ctx, r)
	inspected(err)
	c.deleted(ctx, r.DryRun(), err, known...)
	return err
}

// wrote records a write of obj or of a subresource of it. The response is in answer. The metadata of the body of a
// subresource is the metadata of the object.
func (c *Cluster) wrote(ctx context.Context, obj, answer client.Object, dryRun []string, err error) {
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
