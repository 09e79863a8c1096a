// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/objects/nilcheck"
)

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
		blank := blankOf(gvk, read, c.Scheme())
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
// is for other reads than those of metadata.
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

// blankOf returns an empty object of a kind in the form of an object, or of a list. It returns nil if the scheme does
// not know the kind.
func blankOf(gvk schema.GroupVersionKind, like runtime.Object, scheme *runtime.Scheme) client.Object {
	switch like.(type) {
	case runtime.Unstructured:
		blank := &unstructured.Unstructured{}
		blank.SetGroupVersionKind(gvk)
		return blank
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		blank := &metav1.PartialObjectMetadata{}
		blank.SetGroupVersionKind(gvk)
		return blank
	}
	created, err := scheme.New(gvk)
	if err != nil {
		return nil
	}
	blank, _ := created.(client.Object)
	return blank
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
