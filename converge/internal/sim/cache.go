// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/engine/guard"
)

// processCache is the cache of a manager.
type processCache struct {
	client.Reader

	process *Process
	started bool
}

var _ cache.Cache = (*processCache)(nil)

// IndexField registers a field index.
func (c *processCache) IndexField(
	_ context.Context, obj client.Object, field string, extract client.IndexerFunc,
) error {
	gvk, err := apiutil.GVKForObject(obj, c.process.machine.Scheme)
	if err != nil {
		return err
	}
	same := func(x index) bool { return x.kind == gvk && x.field == field }
	if slices.ContainsFunc(c.process.indexes, func(x index) bool { return same(x) && !x.ended }) {
		return fmt.Errorf("indexer conflict: field:%s", field)
	}
	c.process.indexes = slices.DeleteFunc(c.process.indexes, same)
	c.process.indexes = append(c.process.indexes, index{kind: gvk, field: field, extract: extract})
	return nil
}

// GetInformer returns the informer of a kind. It is a call, so that informers are always created in the same order.
func (c *processCache) GetInformer(
	ctx context.Context, obj client.Object, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(obj, c.process.machine.Scheme)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, gvk, formOf(obj))
}

// form is how objects are watched: typed, unstructured, or only their metadata.
type form int

const (
	formTyped form = iota
	formUnstructured
	formMetadata
)

func formOf(obj client.Object) form {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata:
		return formMetadata
	case *unstructured.Unstructured:
		return formUnstructured
	}
	return formTyped
}

// GetInformerForKind returns the informer of a kind.
func (c *processCache) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	return c.informer(ctx, gvk, formTyped)
}

func (c *processCache) informer(
	ctx context.Context, gvk schema.GroupVersionKind, form form,
) (cache.Informer, error) {
	var i *processInformer
	get := func() {
		_, served := c.process.version.Registry.For(gvk)
		_, removed := c.process.gateway.removed.removed(gvk.GroupKind())
		if served && !removed || c.process.existing(gvk) != nil {
			i = c.process.informer(gvk).inForm(c.process, form)
		}
	}
	if !c.started {
		get()
	} else if err := c.process.submit(ctx, &call{
		Call: world.Call{Site: inject.Site{Act: "watch", Kind: gvk.Kind}}, begin: get,
	}); err != nil {
		return nil, err
	}
	if i == nil {
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return i, nil
}

// RemoveInformer removes the informer of a kind, with its handlers.
func (c *processCache) RemoveInformer(ctx context.Context, obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, c.process.machine.Scheme)
	if err != nil {
		return err
	}
	return c.process.submit(ctx, &call{
		Call:  world.Call{Site: inject.Site{Act: "end watch", Kind: gvk.Kind}},
		begin: func() { c.process.removeInformer(gvk, formOf(obj)) },
	})
}

// removeInformer removes the informer of a kind in a form. The last one takes the cache of the kind with it.
func (p *Process) removeInformer(gvk schema.GroupVersionKind, form form) {
	i := p.existing(gvk)
	if i == nil {
		return
	}
	ofForm := func(r *registration) bool { return r.informer == i.forms[form] }
	i.handlers, i.joining = slices.DeleteFunc(i.handlers, ofForm), slices.DeleteFunc(i.joining, ofForm)
	i.forms[form] = nil
	if i.forms == [len(i.forms)]*processInformer{} && len(i.plain)+len(i.mappers) == 0 {
		p.informers = slices.DeleteFunc(p.informers, func(other *informer) bool { return other == i })
		for n := range p.indexes {
			p.indexes[n].ended = p.indexes[n].ended || p.indexes[n].kind == gvk
		}
	}
}

// WaitForCacheSync returns true: a cache is synced when it is created.
func (c *processCache) WaitForCacheSync(context.Context) bool { return true }

// Start waits until the context ends.
func (c *processCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

type journalKey struct{}

func journalIn(ctx context.Context) *guard.Journal {
	journal, _ := ctx.Value(journalKey{}).(*guard.Journal)
	return journal
}

// guarded returns a client that records what is written, for a gate to wait for.
func (p *Process) guarded(cached client.Client, live client.Reader, cache *processCache) client.Client {
	p.guard = guard.NewCluster(cached, live, cache, journalIn)
	for _, obj := range p.machine.Gated {
		p.guard.Watch(obj)
	}
	return p.guard.Client()
}

// consistent returns a reconciler whose requests wait until the caches have their earlier writes, with [Gate].
func (p *Process) consistent(inner reconcile.Reconciler) reconcile.Reconciler {
	if p.guard == nil || inner == nil {
		return inner
	}
	gate := &guard.Gate{}
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		journal := &guard.Journal{}
		ctx = context.WithValue(ctx, journalKey{}, journal)
		if wait := gate.Enter(ctx, req, journal, guard.DefaultTimeout); wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
		defer gate.Leave(req, journal)
		return inner.Reconcile(ctx, req)
	})
}
