// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
)

// memapiCollector is the client of changes by the garbage collector.
const memapiCollector = "kube-controller-manager"

// collect does what the garbage collector does after the deletions of the plan, and reports whether that is anything.
func (o *overlay) collect(ctx context.Context, dependents *dependents) (bool, error) {
	events, err := o.collectLocked(ctx, dependents)
	return len(events) > 0, o.deliver(events, err)
}

func (o *overlay) collectLocked(ctx context.Context, dependents *dependents) (memEvents, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	owners := o.deletedOwners()
	for _, owner := range slices.Clone(o.order) {
		if uid := o.uidOf(owner); uid != "" && owners[uid] && !o.searched[uid] {
			o.searched[uid] = true
			if err := o.loadDependents(ctx, dependents, owner.key.Namespace, uid); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range o.server.Garbage() {
		if o.isGarbage(c, owners) {
			if err := o.server.Collect(c); err != nil {
				return nil, err
			}
		}
	}
	return o.changed(), nil
}

func (o *overlay) uidOf(id objectID) types.UID {
	return (&unstructured.Unstructured{Object: o.loaded[id]}).GetUID()
}

// deletedOwners are the UIDs of the objects that the plan has deleted, or that wait for the deletion of dependents.
func (o *overlay) deletedOwners() map[types.UID]bool {
	deleted := map[types.UID]bool{}
	for _, e := range o.server.Events(0) {
		if e.Object.GetDeletionTimestamp() != nil || e.Type == watch.Deleted {
			deleted[e.Object.GetUID()] = true
		}
	}
	return deleted
}

// loadDependents copies what an object owns, with all other owners, into the overlay.
func (o *overlay) loadDependents(
	ctx context.Context, dependents *dependents, namespace string, uid types.UID,
) error {
	found, hidden, err := dependents.of(ctx, namespace, uid)
	if err != nil {
		return err
	}
	o.note(hidden)
	for _, id := range found {
		if err := o.define(ctx, id.kind); err != nil {
			return err
		}
		if err := o.load(ctx, id); err != nil {
			return err
		}
		for _, ref := range (&unstructured.Unstructured{Object: o.loaded[id]}).GetOwnerReferences() {
			if ref.UID == uid {
				continue
			}
			owner := objectID{
				schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind),
				client.ObjectKey{Namespace: id.key.Namespace, Name: ref.Name},
			}
			if err := o.define(ctx, owner.kind); meta.IsNoMatchError(err) {
				continue
			} else if err != nil {
				return err
			}
			if err := o.load(ctx, owner); err != nil {
				return err
			}
		}
	}
	return nil
}

// isGarbage reports whether a step is a consequence of a deletion of the plan. Owners of other objects may not be in
// the overlay.
func (o *overlay) isGarbage(c memapi.Collection, owners map[types.UID]bool) bool {
	obj := &unstructured.Unstructured{Object: o.server.Content(c.Kind, c.Key)}
	if c.Type == memapi.FinishDeletion {
		return owners[obj.GetUID()]
	}
	refs := obj.GetOwnerReferences()
	return slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool { return owners[ref.UID] })
}

// dependents finds the objects of the cluster by their owners. It keeps the objects of the namespaces that were last
// used.
type dependents struct {
	cluster client.Client

	mu    sync.Mutex
	kinds []*meta.RESTMapping
	last  []*owned
}

// owned are the objects of a namespace that have owners.
type owned struct {
	namespace string
	list      func() error // lists them once
	byOwner   map[types.UID][]objectID
	hidden    []string // kinds that cannot be listed
}

// maxOwned is the number of namespaces that dependents keeps.
const maxOwned = 16

// forget drops what is known about the objects of the cluster.
func (d *dependents) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = nil
}

// in returns the objects of a namespace.
func (d *dependents) in(ctx context.Context, namespace string) *owned {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kinds == nil {
		d.kinds = listable(d.cluster)
	}
	at := slices.IndexFunc(d.last, func(o *owned) bool { return o.namespace == namespace })
	if at >= 0 {
		return d.last[at]
	}
	o := &owned{namespace: namespace, byOwner: map[types.UID][]objectID{}}
	kinds := d.kinds
	o.list = sync.OnceValue(func() error { return o.listAll(ctx, d.cluster, kinds) })
	d.last = append(d.last[max(0, len(d.last)-maxOwned+1):], o)
	return o
}

// drop forgets the objects of one namespace.
func (d *dependents) drop(o *owned) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = slices.DeleteFunc(d.last, func(other *owned) bool { return other == o })
}

// maxHidden is the number of kinds that a text names.
const maxHidden = 5

// of returns the objects that an object owns, and what is not known about them.
func (d *dependents) of(ctx context.Context, namespace string, uid types.UID) ([]objectID, string, error) {
	o := d.in(ctx, namespace)
	if err := o.list(); err != nil {
		d.drop(o)
		return nil, "", err
	}
	hidden := ""
	if len(o.hidden) > 0 {
		names := o.hidden
		if len(names) > maxHidden {
			names = append(slices.Clone(names[:maxHidden]), "…")
		}
		hidden = fmt.Sprintf(
			"what garbage collection deletes of %d kinds, because listing them is forbidden: %s",
			len(o.hidden), strings.Join(names, ", "),
		)
	}
	return o.byOwner[uid], hidden, nil
}

func (o *owned) listAll(ctx context.Context, cluster client.Client, kinds []*meta.RESTMapping) error {
	for _, mapping := range kinds {
		if o.namespace != "" && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			continue // its owners are cluster-scoped
		}
		kind := mapping.GroupVersionKind
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := eachPage(ctx, cluster, list, &client.ListOptions{Namespace: o.namespace}, func(obj client.Object) error {
			for _, ref := range obj.GetOwnerReferences() {
				o.byOwner[ref.UID] = append(o.byOwner[ref.UID], objectID{kind, client.ObjectKeyFromObject(obj)})
			}
			return nil
		})
		switch {
		case apierrs.IsForbidden(err):
			o.hidden = append(o.hidden, kind.Kind)
		case apierrs.IsMethodNotSupported(err), apierrs.IsNotFound(err), meta.IsNoMatchError(err):
		case err != nil:
			return fmt.Errorf("list %s to find what owners take along: %w", kind.Kind, err)
		}
	}
	return nil
}

// neverOwned are kinds with many objects, whose owners are not objects that a program deletes.
var neverOwned = []schema.GroupKind{
	{Kind: "Event"},
	{Group: "events.k8s.io", Kind: "Event"},
	{Group: "coordination.k8s.io", Kind: "Lease"},
	{Kind: "ComponentStatus"},
}

// listable returns the kinds of the scheme that the cluster has, each in one version.
func listable(cluster client.Client) []*meta.RESTMapping {
	seen := map[schema.GroupKind]bool{}
	var kinds []*meta.RESTMapping
	for gvk, t := range cluster.Scheme().AllKnownTypes() {
		isObject := reflect.PointerTo(t).Implements(reflect.TypeFor[client.Object]())
		isListed := cluster.Scheme().Recognizes(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if !isObject || !isListed || seen[gvk.GroupKind()] || slices.Contains(neverOwned, gvk.GroupKind()) {
			continue
		}
		seen[gvk.GroupKind()] = true
		if mapping, err := cluster.RESTMapper().RESTMapping(gvk.GroupKind()); err == nil {
			kinds = append(kinds, mapping)
		}
	}
	slices.SortFunc(kinds, func(a, b *meta.RESTMapping) int {
		return strings.Compare(a.GroupVersionKind.String(), b.GroupVersionKind.String())
	})
	return kinds
}
