// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/graph"
	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/registration"
	"trueup.dev/internal/engine/served"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/internal/objects/servedstatus"
	"trueup.dev/observe"
)

// watched holds the kinds that a controller watches with [EnqueueTracked]. It is empty until its builder was read.
// Methods on a nil receiver behave as if it is empty.
type watched struct {
	// reconciler is the name of the root reconciler.
	reconciler string

	mu sync.Mutex
	// handlers are the handlers that EnqueueTracked returned during setup.
	handlers []*trackedHandler

	kinds atomic.Pointer[watchedKinds]
	// forms is nil until the controller was built.
	forms atomic.Pointer[readForms]
	// watches are the watches that each reconciler registered.
	watches map[any][]graph.Watch
	// warned contains the kinds for which a warning was logged.
	warned sync.Map
	// gates are for the kinds that may not be served, one for each cache.
	gates []*gate
	// notSetUp guards the warning that the root reconciler was not set up.
	notSetUp sync.Once
}

// watchedKinds holds the kinds that a controller watches.
type watchedKinds struct {
	// tracked holds the kinds that are watched with EnqueueTracked, and the cache that delivers their events.
	tracked map[watchedKind]delivered
	// any holds the kinds that are watched with EnqueueTracked, or with an unknown handler that may do the same.
	any map[schema.GroupKind]bool
	// owned holds the kinds that are watched as children.
	owned map[schema.GroupKind]bool
	// incomplete reports whether the controller may have more watches.
	incomplete bool
}

type watchedKind struct {
	cache cache.Cache
	schema.GroupKind
}

// delivered reports which events of a watch certainly pass all predicates.
type delivered struct{ creations, all bool }

// begin resets w. It is called before setup.
func (w *watched) begin(reconciler string) {
	w.reconciler = reconciler
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handlers, w.gates = nil, nil
	w.kinds.Store(nil)
	w.forms.Store(nil)
}

// build reads the builder of the controller and builds it, see readBuilder.
func (w *watched) build(
	ctx context.Context, mgr Manager, bldr *Builder, record *registration.Record, moreWatches bool, r reconcile.Reconciler,
) (controller.Controller, error) {
	watches, tracks := w.readBuilder(mgr, bldr, record, moreWatches)
	for _, watch := range slices.Concat(watches, watchesOfOwn(mgr, bldr)) {
		if gvk, err := apiutil.GVKForObject(watch.object, mgr.GetScheme()); err == nil && !w.gated(watch.cache, gvk) {
			served.Of(watch.cache).WatchPlainly(gvk, w.reconciler)
		}
		if watch.metadataOnly || watch.cache != mgr.GetCache() {
			continue
		}
		if err := listsOf(mgr.GetScheme(), watch.object); err != nil {
			return nil, fmt.Errorf("%s: %w", w.reconciler, err)
		}
	}
	forms := newReadForms(mgr, bldr, watches)
	if shard := scopeFrom(ctx).originalConfig.Shard; shard != nil && !ctrlfields.WrapPredicates(
		bldr, func(p predicate.Predicate) predicate.Predicate { return shard.Predicate(p) },
	) {
		return nil, errors.New("Config.Shard does not support this version of controller-runtime")
	}
	if err := w.closeGates(bldr); err != nil {
		return nil, err
	}
	built, err := bldr.Build(r)
	if err != nil {
		return nil, err
	}
	forms.controller = built
	w.forms.Store(forms)
	scopeFrom(ctx).originalConfig.adviseOnSyncPeriod(ctx, tracks)
	return built, nil
}

// addHandler records a handler. The handler is used in the builder, or in a watch that is added later.
func (w *watched) addHandler(tracked *trackedHandler) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := w.kinds.Load()
	if kinds == nil {
		w.handlers = append(w.handlers, tracked)
	} else if !kinds.incomplete {
		w.kinds.Store(&watchedKinds{tracked: kinds.tracked, any: kinds.any, owned: kinds.owned, incomplete: true})
	}
}

// readBuilder reads the builder of the controller before it is built. The record names the reconciler of each watch. If
// moreWatches is true, the user may add watches to the controller later. It returns the watches, and whether
// EnqueueTracked was called.
func (w *watched) readBuilder(
	mgr Manager, bldr *Builder, record *registration.Record, moreWatches bool,
) (watches []readWatch, tracks bool) {
	watches, ok := watchesOf(mgr, bldr, record)
	kinds := &watchedKinds{
		tracked: map[watchedKind]delivered{}, any: map[schema.GroupKind]bool{}, owned: map[schema.GroupKind]bool{},
		incomplete: moreWatches || !ok,
	}
	for i, watch := range watchesOfOwn(mgr, bldr) {
		// The first one is the watch of the resource.
		if gvk, err := apiutil.GVKForObject(watch.object, mgr.GetScheme()); err == nil && i > 0 {
			kinds.owned[gvk.GroupKind()] = true
		}
	}
	found, byReconciler := map[*trackedHandler]bool{}, map[any][]graph.Watch{}
	for _, watch := range watches {
		_, ours := watch.handler.(*trackedHandler)
		byReconciler[watch.by] = append(byReconciler[watch.by], graph.Watch{Object: watch.object, Tracked: ours})
		gvk, err := apiutil.GVKForObject(watch.object, mgr.GetScheme())
		if err != nil {
			kinds.incomplete = true
			continue
		}
		kinds.any[gvk.GroupKind()] = true
		if tracked, ours := watch.handler.(*trackedHandler); ours {
			found[tracked] = true
			key := watchedKind{watch.cache, gvk.GroupKind()}
			now := deliveredBy(watch.predicates)
			before := kinds.tracked[key]
			kinds.tracked[key] = delivered{creations: before.creations || now.creations, all: before.all || now.all}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tracked := range w.handlers {
		if !found[tracked] {
			// The handler is part of another handler or belongs to a watch that is added later.
			kinds.incomplete = true
		}
	}
	tracks = len(w.handlers) > 0
	w.handlers, w.watches = nil, byReconciler
	w.kinds.Store(kinds)
	return watches, tracks
}

// deliveries returns which events of a kind in a cache enqueue requests for the resources that track the objects.
func (w *watched) deliveries(informers cache.Cache, kind schema.GroupKind) delivered {
	if w == nil || informers == nil {
		return delivered{}
	}
	kinds := w.kinds.Load()
	if kinds == nil || len(kinds.tracked) == 0 {
		return delivered{}
	}
	return kinds.tracked[watchedKind{informers, kind}]
}

// lacks reports whether the kind is certainly not watched.
func (w *watched) lacks(kind schema.GroupKind) bool {
	if w == nil {
		return false
	}
	kinds := w.kinds.Load()
	return kinds != nil && !kinds.incomplete && !kinds.any[kind]
}

// warnNotSetUp reports, once, that a controller runs a root reconciler whose SetupWithManager was not called.
func (w *watched) warnNotSetUp(ctx context.Context, root root) {
	if w.reconciler != "" || root.config.cache == nil {
		return // a config without a manager has no watches
	}
	w.notSetUp.Do(func() {
		text := fmt.Sprintf("SetupWithManager of %s %q was not called: nothing was validated, and changes of children and "+
			"of tracked objects trigger no reconcile; call it instead of building a controller", root.kind, root.name)
		root.config.Hub().Report(ctx, &observe.ProblemFound{Path: []string{root.name}, Text: text})
		logr.FromContextOrDiscard(ctx).Error(errNotSetUp, text)
	})
}

var errNotSetUp = errors.New("the reconciler was not set up")

// warnChildNotSetUp reports, once for each name, that a reconciler of children was not set up with its root, and that
// the controller does not watch the kind of its children.
func (w *watched) warnChildNotSetUp(ctx context.Context, reconciler string, kind schema.GroupKind) {
	if w == nil {
		return
	}
	kinds := w.kinds.Load()
	if kinds == nil || kinds.incomplete || kinds.any[kind] || kinds.owned[kind] {
		return
	}
	if _, warned := w.warned.LoadOrStore(reconciler, true); warned {
		return
	}
	text := fmt.Sprintf("SetupWithManager of %s was not called, and the controller does not watch %s: changes of the "+
		"children trigger no reconcile; call it in SetupWithManager of the reconciler that contains it", reconciler, kind)
	observe.Of(nil).Report(ctx, &observe.ProblemFound{Path: step.Names(ctx), Text: text})
	logr.FromContextOrDiscard(ctx).Error(errNotSetUp, text)
}

// warnOnce reports whether no warning was logged for this kind yet.
func (w *watched) warnOnce(kind schema.GroupKind) bool {
	_, warned := w.warned.LoadOrStore(kind, true)
	return !warned
}

// readWatch is a watch of a builder.
type readWatch struct {
	// by is the reconciler that registered the watch.
	by     any
	cache  cache.Cache
	object client.Object
	// metadataOnly reports whether only the metadata of the objects is watched.
	metadataOnly bool
	handler      any
	predicates   []predicate.Predicate
}

// watchesOf returns the watches of a builder with handlers that the user chose. It returns false if it cannot read all
// of them.
func watchesOf(mgr Manager, bldr *Builder, record *registration.Record) ([]readWatch, bool) {
	inputs, ok := ctrlfields.WatchesInputs(bldr)
	sources, alsoOK := ctrlfields.RawSources(bldr)
	filters, andOK := ctrlfields.GlobalPredicates(bldr)
	if !ok || !alsoOK || !andOK {
		return nil, false
	}
	watches, complete := []readWatch{}, true
	for i, input := range inputs {
		watches = append(watches, readWatch{
			by: record.Watch(i), cache: mgr.GetCache(), object: input.Object, metadataOnly: input.MetadataOnly,
			handler: input.Handler, predicates: slices.Concat(filters, input.Predicates),
		})
	}
	for i, src := range sources {
		switch src := src.(type) {
		case *ownerIndexSource, startSource, *servedstatus.Source, *gatedSource:
			continue // these sources deliver no events
		default:
			watch, ok := readSource(src)
			if !ok {
				complete = false
				continue
			}
			watch.by = record.Source(i)
			watches = append(watches, watch)
		}
	}
	return watches, complete
}

// readSource reads a [source.Kind].
func readSource(src source.Source) (watch readWatch, ok bool) {
	kind, ok := ctrlfields.KindOf(src)
	if !ok || kind.Handler == nil {
		return watch, false
	}
	watch = readWatch{cache: kind.Cache, object: kind.Object, handler: kind.Handler, predicates: kind.Predicates}
	if kind.TypedPredicates {
		watch.predicates = []predicate.Predicate{nil} // unknown
	}
	return watch, true
}

// deliveredBy returns which events certainly pass all predicates.
func deliveredBy(predicates []predicate.Predicate) delivered {
	for _, p := range predicates {
		var creations func(event.CreateEvent) bool
		switch p := p.(type) {
		case predicate.Funcs:
			creations = p.CreateFunc
		case predicate.GenerationChangedPredicate:
			creations = p.CreateFunc
		case predicate.ResourceVersionChangedPredicate:
			creations = p.CreateFunc
		case predicate.LabelChangedPredicate:
			creations = p.CreateFunc
		case predicate.AnnotationChangedPredicate:
			creations = p.CreateFunc
		default:
			return delivered{}
		}
		if creations != nil {
			return delivered{}
		}
	}
	return delivered{creations: true, all: len(predicates) == 0}
}

// registered returns the function that returns the watches of each reconciler. It returns nil before set-up.
func (w *watched) registered() func(reconciler any) []graph.Watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kinds.Load() == nil {
		return nil
	}
	watches := w.watches
	return func(reconciler any) []graph.Watch {
		if reconciler != nil && !reflect.ValueOf(reconciler).Comparable() {
			return nil
		}
		return watches[reconciler]
	}
}

// readForms makes a controller watch each kind in the form in which its reconcilers read it.
//
// The cache has one informer for typed objects of a kind, one for unstructured objects, and one for metadata. They
// receive a change at different times. If the event of one triggers a reconcile that reads from another, the reconcile
// may read the object as it was before the change, and no event follows. So at the first such read, readForms adds a
// watch of the informer that is read. That informer exists anyway, because of the read.
type readForms struct {
	controller controller.Controller

	// types holds the caches from which each Go type has been read, for fast lookups.
	types sync.Map

	mu      sync.Mutex
	watches map[watchedKind][]*formWatch
}

// formWatch is a watch of a kind.
type formWatch struct {
	// forms are the forms that are watched: the form that the user watches, and those that were added.
	forms []guard.Form
	// light reports whether the user watches metadata or unstructured objects.
	light bool
	// handler is nil if it has a type that only accepts objects of its own form.
	handler    handler.EventHandler
	predicates []predicate.Predicate
}

// newReadForms reads the builder of a controller before it is built. The watches are those that watchesOf returns.
func newReadForms(mgr Manager, bldr *Builder, watches []readWatch) *readForms {
	forms := &readForms{watches: map[watchedKind][]*formWatch{}}
	for _, watch := range slices.Concat(watches, watchesOfOwn(mgr, bldr)) {
		gvk, err := apiutil.GVKForObject(watch.object, mgr.GetScheme())
		if err != nil {
			continue
		}
		object := runtime.Object(watch.object)
		if watch.metadataOnly {
			object = &metav1.PartialObjectMetadata{}
		}
		added := &formWatch{forms: []guard.Form{guard.NewForm(gvk, object)}, light: isLight(object)}
		unknown := slices.ContainsFunc(watch.predicates, func(p predicate.Predicate) bool { return p == nil })
		if eventHandler, ok := watch.handler.(handler.EventHandler); ok && !unknown {
			added.handler, added.predicates = eventHandler, watch.predicates
		}
		key := watchedKind{watch.cache, gvk.GroupKind()}
		forms.watches[key] = append(forms.watches[key], added)
	}
	return forms
}

func isLight(obj runtime.Object) bool {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return true
	}
	return false
}

// watchesOfOwn returns the watches of a builder that enqueue the resource and its owner, see watchesOf.
func watchesOfOwn(mgr Manager, bldr *Builder) []readWatch {
	input, ok := ctrlfields.ForInput(bldr)
	owned, alsoOK := ctrlfields.OwnsInputs(bldr)
	filters, andOK := ctrlfields.GlobalPredicates(bldr)
	if !ok || !alsoOK || !andOK {
		return nil
	}
	watches := []readWatch{}
	add := func(input ctrlfields.Input, eventHandler handler.EventHandler) {
		if nilcheck.IsNilPointer(input.Object) {
			return
		}
		watches = append(watches, readWatch{
			cache: mgr.GetCache(), object: input.Object, metadataOnly: input.MetadataOnly, handler: eventHandler,
			predicates: slices.Concat(filters, input.Predicates),
		})
	}
	add(input, &handler.EnqueueRequestForObject{})
	if len(watches) == 0 {
		return nil
	}
	if _, err := apiutil.GVKForObject(watches[0].object, mgr.GetScheme()); err != nil {
		return nil // EnqueueRequestForOwner would panic; the builder returns a better error
	}
	for _, input := range owned {
		options := []handler.OwnerOption{handler.OnlyControllerOwner()}
		if input.MatchEveryOwner {
			options = nil
		}
		add(input, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), watches[0].object, options...))
	}
	return watches
}

// formClient is the client of a cluster. It tells the controller of each request what the request reads from the cache.
type formClient struct {
	client.Client
	cluster *guard.Cluster
	cache   cache.Cache
	cached  func(gvk schema.GroupVersionKind, obj runtime.Object) bool
}

func (c *formClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.reads(ctx, obj)
	return explainNamespace(c.Client.Get(ctx, key, obj, opts...), key.Namespace)
}

func (c *formClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.reads(ctx, list)
	err := c.Client.List(ctx, list, opts...)
	if err == nil {
		return nil
	}
	return explainNamespace(err, (&client.ListOptions{}).ApplyOptions(opts).Namespace)
}

// ownerSelector selects the objects of a kind that an owner controls, by the index of an informer.
type ownerSelector struct {
	fields.Selector
	owner types.UID
	kind  schema.GroupVersionKind
	in    indexedInformer
}

// ownedClient answers lists with an ownerSelector, below all clients that record what is read.
type ownedClient struct {
	client.Client
	cached func(gvk schema.GroupVersionKind, obj runtime.Object) bool
}

func (c ownedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	for _, opt := range opts {
		options, ok := opt.(*client.ListOptions)
		if !ok {
			continue
		}
		selector, ok := options.FieldSelector.(ownerSelector)
		if !ok || !c.cached(selector.kind, list) {
			continue
		}
		if len(opts) > 1 {
			options = (&client.ListOptions{}).ApplyOptions(opts)
		}
		return selector.list(list, options)
	}
	return c.Client.List(ctx, list, opts...)
}

func (s ownerSelector) list(list client.ObjectList, options *client.ListOptions) error {
	if s.in.IsStopped() || !s.in.HasSynced() {
		return errors.New("the informer has stopped, or is not filled yet")
	}
	bucket, err := s.in.GetIndexer().ByIndex(ownerIndexField, ownerBucket(s.owner))
	if err != nil {
		return err
	}
	owned := make([]runtime.Object, 0, 1)
	for _, obj := range bucket {
		object, ok := obj.(client.Object)
		if !ok {
			return fmt.Errorf("index by owner: unexpected %T", obj)
		}
		ref := metav1.GetControllerOfNoCopy(object)
		if ref == nil || ref.UID != s.owner ||
			options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		if unsafe := options.UnsafeDisableDeepCopy; unsafe == nil || !*unsafe {
			object = object.DeepCopyObject().(client.Object)
			object.GetObjectKind().SetGroupVersionKind(s.kind)
		}
		owned = append(owned, object)
	}
	return meta.SetList(list, owned)
}

// explainNamespace says what to do if the cache of a manager does not have a namespace. The error of the cache has no
// type.
func explainNamespace(err error, namespace string) error {
	if err == nil || !strings.Contains(err.Error(), "because of unknown namespace for the cache") {
		return err
	}
	if namespace == "" {
		return fmt.Errorf("%w: the manager caches some namespaces, and no cluster-scoped objects of this kind", err)
	}
	return fmt.Errorf("%w: the manager does not cache the namespace %q; add it to DefaultNamespaces of its cache.Options"+
		", or to the Namespaces of the kind in ByObject, or read with APIReader of the Config", err, namespace)
}

// reads is called before a read. If the watch is added after the read, the read may have started the informer: then the
// informer reports all its objects to the watch.
func (c *formClient) reads(ctx context.Context, obj runtime.Object) {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok || s.watched == nil {
		return
	}
	forms := s.watched.forms.Load()
	if forms == nil {
		return
	}
	if !isLight(obj) && forms.known(reflect.TypeOf(obj), c.cache) {
		return
	}
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if c.cached(gvk, obj) {
		forms.watch(ctx, c, gvk, obj)
	}
}

// known reports whether a Go type has been read from a cache before. It allocates nothing then.
func (r *readForms) known(goType reflect.Type, of cache.Cache) bool {
	value, _ := r.types.Load(goType)
	caches, _ := value.([]cache.Cache)
	if slices.Contains(caches, of) {
		return true
	}
	r.types.Store(goType, append(slices.Clip(caches), of))
	return false
}

// watch adds the watches that the form of an object, or of a list, lacks.
func (r *readForms) watch(ctx context.Context, c *formClient, gvk schema.GroupVersionKind, read runtime.Object) {
	form := guard.NewForm(gvk, read)
	r.mu.Lock()
	defer r.mu.Unlock()
	watches := r.watches[watchedKind{c.cache, gvk.GroupKind()}]
	for _, watch := range watches {
		if !watch.lacks(form) || slices.ContainsFunc(watches, func(w *formWatch) bool { return w.replaces(watch, form) }) {
			continue
		}
		watch.forms = append(watch.forms, form)
		log := logr.FromContextOrDiscard(ctx).WithValues(
			"kind", gvk.GroupKind().String(), "read", reflect.TypeOf(read).String(),
		)
		blank := empty.Of(gvk, read, c.Scheme())
		if watch.handler == nil || blank == nil {
			log.Info("the kind is watched in another form than it is read, a change may trigger the resource before it can be " +
				"read: watch the form that is read")
			continue
		}
		log.Info("the kind is watched in another form than it is read, the form that is read is watched too")
		c.cluster.Watch(blank)
		if err := r.controller.Watch(source.Kind(c.cache, blank, watch.handler, watch.predicates...)); err != nil {
			log.Error(err, "unable to watch the form that is read")
		}
	}
}

// lacks reports whether the form that is read must be watched, too. A watch of typed objects without [EnqueueTracked]
// is for other reads than reads of metadata.
func (w *formWatch) lacks(form guard.Form) bool {
	return !slices.Contains(w.forms, form) && (w.light || w.tracked())
}

func (w *formWatch) tracked() bool {
	_, tracked := w.handler.(*trackedHandler)
	return tracked
}

// replaces reports whether w delivers the events of a form to the resources to which the other watch delivers its own.
func (w *formWatch) replaces(other *formWatch, form guard.Form) bool {
	return w != other && w.tracked() && other.tracked() && len(w.predicates) == 0 && slices.Contains(w.forms, form)
}

// readsFromCache returns a function that reports whether a client reads a kind in the form of an object, or of a list,
// from its cache. For clients that are not from controller-runtime it assumes the default options.
func readsFromCache(c client.Client) func(gvk schema.GroupVersionKind, obj runtime.Object) bool {
	uncached, unstructuredToo := ctrlfields.CacheOptions(c)
	return func(gvk schema.GroupVersionKind, obj runtime.Object) bool {
		_, live := uncached[gvk]
		_, untyped := obj.(runtime.Unstructured)
		return !live && (unstructuredToo || !untyped)
	}
}
