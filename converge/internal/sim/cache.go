// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"

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
	gvk, err := apiutil.GVKForObject(obj, c.process.run.machine.Scheme)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(c.process.indexes, func(x index) bool { return x.kind == gvk && x.field == field }) {
		return fmt.Errorf("indexer conflict: field:%s", field)
	}
	c.process.indexes = append(c.process.indexes, index{kind: gvk, field: field, extract: extract})
	return nil
}

// GetInformer returns the informer of a kind. It is a call, so that informers are always created in the same order.
func (c *processCache) GetInformer(
	ctx context.Context, obj client.Object, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(obj, c.process.run.machine.Scheme)
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
	if _, ok := c.process.run.running.Registry.For(gvk); !ok {
		return nil, fmt.Errorf("no matches for kind %q in version %q", gvk.Kind, gvk.GroupVersion())
	}
	if !c.started {
		return c.process.informer(gvk).inForm(c.process, form), nil
	}
	var i *processInformer
	err := c.process.submit(ctx, &call{
		Call: world.Call{Site: inject.Site{Act: "watch", Kind: gvk.Kind}}, begin: func() {
			i = c.process.informer(gvk).inForm(c.process, form)
		},
	})
	if err != nil {
		return nil, err
	}
	return i, nil
}

// RemoveInformer does nothing.
func (c *processCache) RemoveInformer(context.Context, client.Object) error { return nil }

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
	for _, obj := range p.run.machine.Gated {
		p.guard.Watch(obj)
	}
	return p.guard.Client()
}

// consistent returns a reconciler whose requests wait until the caches have their earlier writes, with [Gate].
func (r *run) consistent(p *Process, inner reconcile.Reconciler) reconcile.Reconciler {
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
