// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/cacheapi"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/lifecycle"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
)

// WhileServed returns an informer that runs only while the API server serves its kind, for example a kind of a
// CustomResourceDefinition that is installed later. It takes over the given informer. Neither a manager nor a readiness
// check waits for it.
//
// The controller of the informer starts and stops it: a [trueup.dev/operator.InformerController] does so, and any
// other controller that uses the [View] must have its field WhileServed set. RemoveInformer stops the informer, and the
// next call of GetInformer, Get or List starts it again, without the objects and the handlers that it had, and with the
// same indexes. The given informer must support this. The informers of this package and the caches of
// controller-runtime do.
func WhileServed(informer Informer) Informer {
	if nilcheck.IsNil(informer) || lifecycle.RunsWhileServed(informer) {
		return informer
	}
	_, renews := again(informer)
	return &onDemand{object: informer.Object(), current: informer, renews: renews, begun: make(chan struct{})}
}

// onDemand is an informer that runs from a call of GetInformer, Get or List until RemoveInformer.
type onDemand struct {
	object client.Object
	// renews reports whether each run needs a new informer, see again.
	renews bool
	// begun is closed when Start is called.
	begun chan struct{}

	mu sync.Mutex
	// current is the informer that runs, or that will run next.
	current Informer
	indexes []fieldIndex
	// active reports whether the informer runs, or will when Start is called.
	active bool
	// ctx is the context of Start, nil before it.
	ctx     context.Context
	stopped bool
	running sync.WaitGroup
}

// fieldIndex is an index that each run of an informer has.
type fieldIndex struct {
	field   string
	extract client.IndexerFunc
}

// again returns a new informer with the same objects. It returns false for one that starts again by itself after
// RemoveInformer, like the caches of controller-runtime.
func again(of Informer) (Informer, bool) {
	switch of := of.(type) {
	case *CustomCache:
		return of.again(), true
	case *shardInformer:
		renewed, ok := again(of.Informer)
		return &shardInformer{renewed, of.filter}, ok
	}
	return nil, false
}

// again returns a new informer of the same kind over the same store.
func (c *CustomCache) again() *CustomCache {
	renewed := &CustomCache{
		object: c.object, gvk: c.gvk, form: c.form, scheme: c.scheme, selection: c.selection, store: c.store, live: c.live,
		newList: c.newList, entries: newEntries(), synced: make(chan struct{}), stopped: make(chan struct{}),
	}
	renewed.listeners = &listeners{informer: renewed}
	for _, f := range c.feeds {
		renewed.addFeed(f.namespace, f.source).onError = f.onError
	}
	return renewed
}

// RunsWhileServed marks the informer, see [lifecycle.RunsWhileServed].
func (o *onDemand) RunsWhileServed() {}

// Object implements [Informer].
func (o *onDemand) Object() client.Object { return o.object }

func (o *onDemand) isEmpty() bool {
	made, ok := o.current.(interface{ isEmpty() bool })
	return ok && made.isEmpty()
}

// KeepsIndexes reports whether the informer has its indexes again after RemoveInformer.
func (o *onDemand) KeepsIndexes(client.Object) bool { return true }

func (o *onDemand) reportTo(hub *observe.Hub) { reportTo(o.current, hub) }

// Start serves the informer until the context ends, whether the informer runs or not.
func (o *onDemand) Start(ctx context.Context) error {
	o.mu.Lock()
	if o.ctx != nil {
		o.mu.Unlock()
		return errors.New("the informer was started already")
	}
	o.ctx = ctx
	ended := make(chan error, 1)
	switch current := o.current; {
	case !o.renews:
		starting, cancel := context.WithCancel(ctx)
		go func() {
			defer cancel()
			ended <- current.Start(ctx)
		}()
		if !o.active {
			current.WaitForCacheSync(starting) // has nothing to wait for yet but the start
		}
	case o.active:
		o.run()
	}
	o.mu.Unlock()
	close(o.begun)
	var err error
	if o.renews {
		<-ctx.Done()
	} else {
		err = <-ended
	}
	o.mu.Lock()
	o.stopped = true // no run starts after this
	o.mu.Unlock()
	o.running.Wait()
	return err
}

// run starts the current informer, which is new. The caller holds mu.
func (o *onDemand) run() {
	current, ctx := o.current, o.ctx
	o.running.Go(func() { _ = current.Start(ctx) }) // fails only for the second time
}

// begin returns the informer, which runs if Start was called. If wait is true, it has all objects then.
func (o *onDemand) begin(ctx context.Context, wait bool) (Informer, error) {
	current, started, err := o.activate(ctx)
	// A new informer can be asked before its own start, and then it does not wait.
	if err == nil && wait && started && o.renews && !current.WaitForCacheSync(ctx) {
		err = errors.Join(lifecycle.ErrNotSynced, ctx.Err())
	}
	return current, err
}

func (o *onDemand) activate(ctx context.Context) (current Informer, started bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	started = o.ctx != nil
	if o.active {
		return o.current, started, nil
	}
	if o.stopped {
		return nil, started, errors.New("the informer has stopped")
	}
	for _, index := range o.indexes {
		if err := o.current.IndexField(ctx, o.object, index.field, index.extract); err != nil {
			return nil, started, errors.Join(err, o.end(ctx, o.object))
		}
	}
	o.active = true
	if o.renews && started {
		o.run()
	}
	return o.current, started, nil
}

// end stops the informer. The caller holds mu.
func (o *onDemand) end(ctx context.Context, obj client.Object) error {
	if err := o.current.RemoveInformer(ctx, obj); err != nil {
		return err
	}
	if o.renews {
		o.current, _ = again(o.current)
	}
	o.active = false
	return nil
}

// RemoveInformer stops the informer until the next call of GetInformer, Get or List.
func (o *onDemand) RemoveInformer(ctx context.Context, obj client.Object) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.active {
		return nil
	}
	return o.end(ctx, obj)
}

// GetInformer starts the informer, if it does not run, and returns the source of its events.
func (o *onDemand) GetInformer(
	ctx context.Context, obj client.Object, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	return o.events(ctx, opts, func(current Informer) (cache.Informer, error) {
		return current.GetInformer(ctx, obj, opts...)
	})
}

// GetInformerForKind is GetInformer for a kind.
func (o *onDemand) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	return o.events(ctx, opts, func(current Informer) (cache.Informer, error) {
		return current.GetInformerForKind(ctx, gvk, opts...)
	})
}

func (o *onDemand) events(
	ctx context.Context, opts []cache.InformerGetOption, of func(current Informer) (cache.Informer, error),
) (cache.Informer, error) {
	options := cacheapi.InformerGetOptions{}
	for _, apply := range opts {
		apply(&options)
	}
	current, err := o.begin(ctx, options.BlockUntilSynced == nil || *options.BlockUntilSynced)
	if err != nil {
		return nil, err
	}
	return of(current)
}

// WaitForCacheSync waits until Start was called, and not for the objects: others must not wait for a kind that may not
// be served.
func (o *onDemand) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-o.begun:
		return true
	case <-ctx.Done():
		return false
	}
}

// Get starts the informer, if it does not run, and reads from it.
func (o *onDemand) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	current, err := o.begin(ctx, true)
	if err != nil {
		return err
	}
	return current.Get(ctx, key, obj, opts...)
}

// List starts the informer, if it does not run, and reads from it.
func (o *onDemand) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	current, err := o.begin(ctx, true)
	if err != nil {
		return err
	}
	return current.List(ctx, list, opts...)
}

// IndexField adds an index to the informer, which has it each time it runs.
func (o *onDemand) IndexField(
	ctx context.Context, obj client.Object, field string, extract client.IndexerFunc,
) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.ContainsFunc(o.indexes, func(index fieldIndex) bool { return index.field == field }) {
		// The text starts as in controller-runtime, because callers match it.
		return fmt.Errorf("indexer conflict: field %s is indexed already", field)
	}
	if o.active {
		if err := o.current.IndexField(ctx, obj, field, extract); err != nil {
			return err
		}
	}
	o.indexes = append(o.indexes, fieldIndex{field, extract})
	return nil
}
