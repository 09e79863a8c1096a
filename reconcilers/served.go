// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/graph"
	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/engine/lifecycle"
	"trueup.dev/internal/engine/served"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
)

var _ subReconciler = (*WhileServed[client.Object])(nil)

// WhileServed runs a subreconciler while the API server serves the kinds that it needs, for example kinds of a
// CustomResourceDefinition that may be installed later. The manager starts without the kinds. When all of them are
// served, their watches are started, and all resources of the controller are reconciled. When one of them is no longer
// served, the informers of that kind are stopped and removed from the cache, and all resources are reconciled without
// the subreconciler. A CustomResourceDefinition that is being deleted does not serve its kinds.
//
// While a kind is not served, a Client of a [Config] for the same cluster returns an error for each read of that kind,
// for which [meta.IsNoMatchError] is true, instead of waiting for its informer.
//
// The subreconciler is not called while a kind is not served, not even if the resource is being deleted. Its children
// of the kind do not exist then. What has to be cleaned up without the kind, and [WithFinalizer], belong outside.
// An enclosing [Prune] deletes nothing meanwhile, unless the resource is being deleted.
//
// All watches of Kinds in the controller wait. Other controllers of the manager should watch a kind only within
// WhileServed, or with WhileServed of [ResourceReconciler]. Otherwise its informer is kept, which logs an error at each
// attempt to list the objects until the kind is served again.
//
// Discovery is asked every five seconds, which needs no permission. The metric trueup_inactive_steps is 1 for each kind
// that a WhileServed waits for.
type WhileServed[Type client.Object] struct {
	// Name identifies this reconciler in logs and metrics. Defaults to `WhileServed`.
	Name string

	// Kinds are the kinds that Reconciler needs, in the versions that it uses: objects of Go types in the scheme, or
	// unstructured objects with apiVersion and kind. Required.
	Kinds []client.Object

	// Reconciler runs while all Kinds are served. Required.
	Reconciler SubReconciler[Type]

	// Else runs while one of the Kinds is not served, for example to set a condition. [RetrieveNotServed] returns which.
	// To support several versions of a kind, use a WhileServed for each version, each in Else of the one before. Optional.
	Else SubReconciler[Type]

	lazyInit sync.Once
	// behind is nil until set-up, and for a config without a cluster.
	behind atomic.Pointer[behindGate]
}

// behindGate is a gate with the kinds that a step needs.
type behindGate struct {
	gate  *gate
	kinds []schema.GroupVersionKind
}

func (r *WhileServed[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "WhileServed"
		}
	})
}

// SetupWithManager validates the reconciler and sets up Reconciler and Else. The watches of Kinds start when the kinds
// are served.
func (r *WhileServed[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler and Else.
func (r *WhileServed[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *WhileServed[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *WhileServed[T]) describe(d *description) {
	r.init()
	d.is("WhileServed", r.Name)
	d.require(len(r.Kinds) > 0, "must define Kinds")
	d.require(given(r.Reconciler), "must define Reconciler")
	d.check(func(_ context.Context, problems *problems) {
		for i, kind := range r.Kinds {
			problems.kind(d.label, fmt.Sprintf("Kinds[%d]", i), kind)
		}
	})
	d.setsUp(r.setUpBehindGate)
	branch := func(then bool) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context { return onBranch(ctx, r, then) }
	}
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler, inside: branch(true), notSetUp: true})
	d.nests(nested{role: "Else", step: true, reconciler: r.Else, inside: branch(false)})
}

func (r *WhileServed[T]) setUpBehindGate(ctx context.Context, mgr Manager, bldr *Builder) error {
	ctx = onBranch(ctx, r, true)
	config, err := RetrieveConfig(ctx)
	if err != nil || config.cache == nil || mgr == nil || bldr == nil {
		return setUpNested(ctx, mgr, bldr, r.Reconciler)
	}
	kinds, err := r.kinds(config)
	if err != nil {
		return err
	}
	g, err := gateOf(ctx, config, mgr, bldr)
	if err != nil {
		return fmt.Errorf("WhileServed %q: %w", r.Name, err)
	}
	g.cover(r.Name, served.ToCreate, kinds...)
	r.behind.Store(&behindGate{g, kinds})
	return setUpNested(ctx, gatedManager{mgr, g}, bldr, r.Reconciler)
}

func (r *WhileServed[T]) kinds(config Config) ([]schema.GroupVersionKind, error) {
	kinds := make([]schema.GroupVersionKind, len(r.Kinds))
	for i, obj := range r.Kinds {
		var err error
		if kinds[i], err = config.GroupVersionKindFor(obj); err != nil {
			return nil, fmt.Errorf("WhileServed %q: Kinds[%d]: %w", r.Name, i, err)
		}
	}
	return kinds, nil
}

// Reconcile runs Reconciler if all kinds are served, and Else otherwise.
func (r *WhileServed[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *WhileServed[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	missing, ready, err := r.state(ctx)
	switch {
	case err != nil:
		return Result{}, err
	case len(missing) > 0:
		if !MustRemove(ctx, resource) {
			scopeFrom(ctx).inventory.keep()
		}
		return r.otherwise(context.WithValue(ctx, notServedKey{}, missing), resource)
	case !ready:
		// The resource is reconciled again when the informers are filled.
		unfinished(ctx, "the informers of its kinds are not filled")
		return Result{}, nil
	}
	result, err := r.Reconciler.Reconcile(ctx, resource)
	if run := stepRunFrom(ctx); run == nil || !run.removes {
		return result, err
	}
	// Else may have made children before the kinds were served.
	after, otherErr := r.otherwise(ctx, resource)
	return AggregateResults(result, after), joinErrors(err, otherErr)
}

func (r *WhileServed[T]) otherwise(ctx context.Context, resource T) (Result, error) {
	if r.Else == nil {
		return Result{}, nil
	}
	return step.Run(ctx, step.Node{Name: "Else"}, resource, r.Else.Reconcile)
}

// state returns the kinds that are not served, and whether the informers of all kinds are filled.
func (r *WhileServed[T]) state(ctx context.Context) (missing []schema.GroupVersionKind, ready bool, err error) {
	if b := r.behind.Load(); b != nil {
		missing, ready = b.gate.state(b.kinds)
		return missing, ready, nil
	}
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return nil, false, err
	}
	kinds, err := r.kinds(config)
	if err != nil {
		return nil, false, err
	}
	for _, kind := range kinds {
		if _, err := config.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			missing = append(missing, kind)
		} else if err != nil {
			return nil, false, err
		}
	}
	return missing, true, nil
}

type notServedKey struct{}

// RetrieveNotServed returns the kinds that are not served, in Else of a [WhileServed]. It returns nil elsewhere.
func RetrieveNotServed(ctx context.Context) []schema.GroupVersionKind {
	missing, _ := ctx.Value(notServedKey{}).([]schema.GroupVersionKind)
	return missing
}

// gate starts the watches of kinds in a controller while the kinds are served. They are kinds of one cache.
type gate struct {
	served *served.Kinds
	config Config
	mgr    Manager
	bldr   *Builder
	scope  scope
	log    logr.Logger

	// decided is closed when it is known of all kinds whether they are served.
	decided chan struct{}

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*gatedKind
	// ctx and queue are for requests of all resources.
	ctx   context.Context
	queue requestQueue
	// running reports whether the controller has started.
	running bool
	// warned reports whether the log has a kind whose informer cannot be stopped.
	warned bool
}

// gatedKind is a kind that may not be served.
type gatedKind struct {
	// steps are the steps that need the kind.
	steps   []string
	need    served.Need
	sources []*gatedSource
	// known reports whether it is known that the kind is served, or that it is not.
	known, served bool
	// ready reports whether the sources run.
	ready bool
}

// gateOf returns the gate of a controller that is being set up, for kinds in the cluster of the config.
func gateOf(ctx context.Context, config Config, mgr Manager, bldr *Builder) (*gate, error) {
	scope := scopeFrom(ctx)
	if scope.watched == nil {
		return nil, errors.New("it must be set up with a root reconciler")
	}
	for _, g := range scope.watched.gates {
		if g.config.cache == config.cache {
			return g, nil
		}
	}
	g := &gate{
		served: served.Of(config.cache), config: config, mgr: mgr, bldr: bldr, scope: scope,
		log: logr.FromContextOrDiscard(ctx), decided: make(chan struct{}), kinds: map[schema.GroupVersionKind]*gatedKind{},
	}
	if g.served == nil {
		return nil, fmt.Errorf("the cache of the cluster must be a pointer, got %T", config.cache)
	}
	scope.watched.gates = append(scope.watched.gates, g)
	bldr.WatchesRawSource(&gatedSource{gate: g})
	return g, nil
}

// cover makes the watches of kinds wait. It is called before the controller is built.
func (g *gate) cover(step string, need served.Need, kinds ...schema.GroupVersionKind) {
	for _, gvk := range kinds {
		if g.kinds[gvk] == nil {
			g.kinds[gvk] = &gatedKind{}
		}
		kind := g.kinds[gvk]
		kind.steps, kind.need = append(kind.steps, step), max(kind.need, need)
	}
}

// gated reports whether the watches of a kind in a cache wait.
func (w *watched) gated(of cache.Cache, gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(w.gates, func(g *gate) bool { return g.config.cache == of && g.kinds[gvk] != nil })
}

// closeGates makes the controller of a builder use the gates.
func (w *watched) closeGates(bldr *Builder) error {
	if len(w.gates) == 0 {
		return nil
	}
	if !ctrlfields.WrapNewController(bldr, func(create ctrlfields.NewController) ctrlfields.NewController {
		return func(name string, mgr manager.Manager, options controller.Options) (controller.Controller, error) {
			created, err := create(name, mgr, options)
			return &gatedController{created, w.gates}, err
		}
	}) {
		return errors.New("WhileServed does not support this version of controller-runtime")
	}
	return nil
}

// gatedController is a controller whose watches of some kinds wait.
type gatedController struct {
	controller.Controller
	gates []*gate
}

// Watch implements [controller.Controller].
func (c *gatedController) Watch(src source.Source) error {
	for _, g := range c.gates {
		src = g.source(src)
	}
	return c.Controller.Watch(src)
}

// source returns a source that waits, if the source is of a kind that may not be served.
func (g *gate) source(src source.Source) source.Source {
	if index, ok := src.(*ownerIndexSource); ok {
		if gvk, ok := g.covers(g.config.cache, index.object); ok && index.indexes.indexer == g.config.owners.indexer {
			return &gatedSource{
				gate: g, kind: gvk, forget: func() { index.indexes.forget(index.index) },
				begin: func(ctx context.Context, _ requestQueue) error { return index.WaitForSync(ctx) },
			}
		}
		return src
	}
	watch, ok := readSource(src)
	if !ok || nilcheck.IsNilPointer(watch.object) {
		return src
	}
	gvk, ok := g.covers(watch.cache, watch.object)
	if !ok {
		return src
	}
	if eventHandler, ok := watch.handler.(handler.EventHandler); ok && !slices.Contains(watch.predicates, nil) {
		return &gatedWatch{
			Type: watch.object, Cache: watch.cache, Handler: eventHandler, Predicates: watch.predicates,
			gatedSource: &gatedSource{gate: g, kind: gvk},
		}
	}
	return &gatedSource{gate: g, kind: gvk, begin: func(ctx context.Context, queue requestQueue) error {
		if err := src.Start(ctx, queue); err != nil {
			return err
		}
		return src.(source.SyncingSource).WaitForSync(ctx) // readSource reads sources of this type
	}}
}

// covers returns the kind of an object in a cache, and whether its watches wait.
func (g *gate) covers(of cache.Cache, obj client.Object) (schema.GroupVersionKind, bool) {
	gvk, err := apiutil.GVKForObject(obj, g.config.Scheme())
	return gvk, err == nil && of == g.config.cache && g.kinds[gvk] != nil
}

// state returns which kinds are not served, and whether the informers of all of them are filled.
func (g *gate) state(kinds []schema.GroupVersionKind) (missing []schema.GroupVersionKind, ready bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ready = true
	for _, gvk := range kinds {
		kind := g.kinds[gvk]
		ready = ready && kind.ready
		if kind.known && !kind.served {
			missing = append(missing, gvk)
		}
	}
	return missing, ready
}

// Served implements [served.Gate].
func (g *gate) Served(gvk schema.GroupVersionKind, isServed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	kind := g.kinds[gvk]
	first, changed := !kind.known, !kind.known || kind.served != isServed
	if kind.known, kind.served = true, isServed; changed {
		g.report(gvk, kind, first)
	}
	switch {
	case isServed:
		for _, s := range kind.sources {
			if s.run == nil {
				s.start()
			}
		}
		g.settle(kind)
	case changed:
		g.stop(gvk, kind)
	}
	if first && !slices.ContainsFunc(slices.Collect(maps.Values(g.kinds)), func(k *gatedKind) bool { return !k.known }) {
		close(g.decided)
	}
}

// settle is called when a source of a kind that is served may have been the last one to start. The caller holds mu.
func (g *gate) settle(kind *gatedKind) {
	starting := func(s *gatedSource) bool { return s.run == nil || !s.run.started }
	if kind.ready || slices.ContainsFunc(kind.sources, starting) {
		return
	}
	kind.ready = true
	g.enqueue()
}

// stop stops the sources of a kind that is not served. The caller holds mu.
func (g *gate) stop(gvk schema.GroupVersionKind, kind *gatedKind) {
	kind.ready = false
	if controller, plain := g.served.Plain(gvk); plain {
		g.warnPlain(gvk, controller)
	} else {
		for _, s := range kind.sources {
			s.stop()
		}
	}
	g.enqueue()
}

// report reports whether a kind is served. The caller holds mu.
func (g *gate) report(gvk schema.GroupVersionKind, kind *gatedKind, first bool) {
	for _, name := range kind.steps {
		g.config.Hub().Report(g.ctx, &observe.KindServed{
			Reconciler: g.scope.controller, Step: name, Kind: gvk, Served: kind.served, Cluster: observe.ClusterOf(g.mgr),
		})
	}
	switch {
	case !kind.served:
		g.log.Info("a kind is not served, steps that need it do not run", "kind", gvk.String(), "steps", kind.steps)
	case !first:
		g.log.Info("a kind is served, steps that need it run when its informers are filled",
			"kind", gvk.String(), "steps", kind.steps)
	}
}

// warnPlain reports, once, that the informer of a kind cannot be stopped. The caller holds mu.
func (g *gate) warnPlain(gvk schema.GroupVersionKind, controller string) {
	if g.warned {
		return
	}
	g.warned = true
	text := fmt.Sprintf("controller %s watches %s outside of WhileServed: its informer is not stopped while the kind is "+
		"not served; watch the kind within WhileServed", controller, gvk.GroupKind())
	g.config.Hub().Report(g.ctx, &observe.ProblemFound{Path: []string{g.scope.controller}, Text: text})
	g.log.Error(errWatchedElsewhere, text)
}

var errWatchedElsewhere = errors.New("the kind is also watched outside of WhileServed")

// enqueue enqueues all resources of the controller, as its start does. The caller holds mu.
func (g *gate) enqueue() {
	if !g.running {
		return // the controller enqueues them
	}
	if g.scope.single {
		_ = startSource(g.scope.request).Start(g.ctx, g.queue) // never fails
		return
	}
	go func() {
		if err := g.enqueueAll(); err != nil && g.ctx.Err() == nil {
			g.log.Error(err, "unable to reconcile all resources after a kind was served or is no longer served")
		}
	}()
}

// enqueueAll enqueues each resource that the watch of the resources delivers. An informer delivers all objects to a new
// handler.
func (g *gate) enqueueAll() error {
	own := watchesOfOwn(g.mgr, g.bldr)
	if len(own) == 0 {
		return errors.New("the builder of the controller cannot be read")
	}
	object := own[0].object
	if own[0].metadataOnly {
		gvk, err := apiutil.GVKForObject(object, g.mgr.GetScheme())
		if err != nil {
			return err
		}
		object = empty.Of(gvk, &metav1.PartialObjectMetadata{}, nil)
	}
	informer, err := served.NewCache(g.mgr.GetCache(), g.config.Client).GetInformer(g.ctx, object)
	if meta.IsNoMatchError(err) {
		return nil // the kind of the resources is not served
	}
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			resource, ok := obj.(client.Object)
			created := event.CreateEvent{Object: resource, IsInInitialList: initial}
			drops := func(p predicate.Predicate) bool { return !p.Create(created) }
			if ok && !slices.ContainsFunc(own[0].predicates, drops) {
				(&handler.EnqueueRequestForObject{}).Create(g.ctx, created, g.queue)
			}
		},
	})
	if err != nil {
		return err
	}
	toolscache.WaitForCacheSync(g.ctx.Done(), registration.HasSynced)
	return informer.RemoveEventHandler(registration)
}

type requestQueue = workqueue.TypedRateLimitingInterface[Request]

// gatedSource is a source of a controller that runs while its kind is served. The source without a kind asks which
// kinds are served.
type gatedSource struct {
	gate *gate
	kind schema.GroupVersionKind
	// begin watches or indexes the kind.
	begin func(ctx context.Context, queue requestQueue) error
	// forget is called when the informer is removed. Optional.
	forget func()
	// ctx and queue belong to the controller. They and run are guarded by the mutex of the gate.
	ctx   context.Context
	queue requestQueue
	// run is nil while the source is not started.
	run *sourceRun
}

// sourceRun is an attempt to start a source.
type sourceRun struct {
	cancel context.CancelFunc
	// done is closed at the end of the attempt. Started and err are set before, while the mutex of the gate is held.
	done    chan struct{}
	started bool
	err     error
}

// start starts the source. The caller holds the mutex of the gate.
func (s *gatedSource) start() {
	g := s.gate
	ctx, cancel := context.WithCancel(s.ctx)
	run := &sourceRun{cancel: cancel, done: make(chan struct{})}
	s.run = run
	queue := s.queue
	go func() {
		err := lifecycle.Retry(ctx, func(ctx context.Context) error {
			return s.begin(ctx, queue)
		}, func(err error, _ int) bool { return isTemporary(err) })
		g.mu.Lock()
		defer g.mu.Unlock()
		defer close(run.done)
		switch run.started = err == nil; {
		case s.run != run: // stopped
		case err != nil:
			run.err, g.kinds[s.kind].ready = err, false
			g.log.Error(err, "unable to watch a kind that is served, trying again later", "kind", s.kind.String())
			s.stop()
		default:
			g.settle(g.kinds[s.kind])
		}
	}()
}

// stop is called before the informer is removed. The caller holds the mutex of the gate.
func (s *gatedSource) stop() {
	if s.run == nil {
		return
	}
	s.run.cancel()
	s.run = nil
	if s.forget != nil {
		s.forget()
	}
}

var _ source.SyncingSource = (*gatedSource)(nil)

// String returns the text of the source in logs. It is also the cause of the requests when a kind comes or goes.
func (s *gatedSource) String() string {
	if s.kind.Empty() {
		return "kinds that are served"
	}
	return fmt.Sprintf("%s while it is served", s.kind.GroupKind())
}

// Start implements [source.Source].
func (s *gatedSource) Start(ctx context.Context, queue requestQueue) error {
	g := s.gate
	if s.kind.Empty() {
		defer g.join(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.kind.Empty() {
		g.ctx, g.queue = ctx, queue
		return nil
	}
	s.ctx, s.queue = ctx, queue
	kind := g.kinds[s.kind]
	kind.sources = append(kind.sources, s)
	if kind.served {
		s.start()
	}
	return nil
}

// join makes the gate learn which kinds are served.
func (g *gate) join(ctx context.Context) {
	needs := map[schema.GroupVersionKind]served.Need{}
	for gvk, kind := range g.kinds {
		needs[gvk] = kind.need
	}
	g.served.Join(ctx, g, needs, served.Cluster{
		Cache: g.config.cache, Client: g.config.Client, Discovery: g.config.Discovery, Log: g.log,
	})
}

// WaitForSync waits until it is known which kinds are served, and for the informer of its own kind if that is served.
func (s *gatedSource) WaitForSync(ctx context.Context) error {
	g := s.gate
	select {
	case <-g.decided:
	case <-ctx.Done(): // the steps wait
	}
	g.mu.Lock()
	g.running = g.running || s.kind.Empty()
	run := s.run
	g.mu.Unlock()
	if run == nil {
		return nil
	}
	select {
	case <-run.done:
		return run.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil
		}
		return fmt.Errorf("timed out waiting for the informer of %s", s.kind)
	}
}

// gatedWatch is a watch of a kind that may not be served. Package ctrlfields reads the exported fields, which have the
// names of the fields of [source.Kind]. Unlike that, it does not wait for the informers of other kinds, which may be
// removed meanwhile.
type gatedWatch struct {
	Type       client.Object
	Cache      cache.Cache
	Handler    handler.EventHandler
	Predicates []predicate.Predicate

	*gatedSource
}

// Start implements [source.Source].
func (w *gatedWatch) Start(ctx context.Context, queue requestQueue) error {
	w.begin = func(ctx context.Context, queue requestQueue) error {
		informer, err := w.Cache.GetInformer(ctx, w.Type) // waits until it is filled
		if err != nil {
			return err
		}
		return (&source.Informer{Informer: informer, Handler: w.Handler, Predicates: w.Predicates}).Start(ctx, queue)
	}
	return w.gatedSource.Start(ctx, queue)
}

// gatedManager makes the indexes of kinds that may not be served wait.
type gatedManager struct {
	Manager
	gate *gate
}

// Unwrap returns the manager. Package observe uses it.
func (m gatedManager) Unwrap() Manager { return m.Manager }

// GetFieldIndexer implements [cluster.Cluster].
func (m gatedManager) GetFieldIndexer() client.FieldIndexer { return gatedIndexer(m) }

type gatedIndexer gatedManager

// IndexField implements [client.FieldIndexer].
func (i gatedIndexer) IndexField(
	ctx context.Context, obj client.Object, field string, extract client.IndexerFunc,
) error {
	indexer := i.GetFieldIndexer()
	gvk, ok := i.gate.covers(i.GetCache(), obj)
	keeps, keepsSome := i.GetCache().(interface{ KeepsIndexes(obj client.Object) bool })
	if !ok || keepsSome && keeps.KeepsIndexes(obj) {
		return indexer.IndexField(ctx, obj, field, extract)
	}
	begin := func(ctx context.Context, _ requestQueue) error { return indexer.IndexField(ctx, obj, field, extract) }
	i.gate.bldr.WatchesRawSource(&gatedSource{gate: i.gate, kind: gvk, begin: begin})
	return nil
}
