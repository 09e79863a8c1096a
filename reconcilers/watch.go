// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/duck"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
)

// watch watches objects of a kind in the cluster of the config. The watches of a builder are always in the cluster of
// the manager. Event filters of the builder do not apply to another cluster.
func (c Config) watch(mgr Manager, bldr *Builder, obj client.Object, handler handler.EventHandler) {
	c.guard.Watch(obj)
	if c.cache == nil || c.cache == mgr.GetCache() {
		bldr.Watches(obj, handler)
		return
	}
	bldr.WatchesRawSource(source.Kind(c.cache, obj, handler))
}

// watchOwned watches the objects that the resource controls, in the cluster of the config.
func (c Config) watchOwned(ctx context.Context, mgr Manager, bldr *Builder, obj client.Object) {
	c.guard.Watch(obj)
	if c.cache == nil || c.cache == mgr.GetCache() {
		bldr.Owns(obj)
		return
	}
	owner := watchable(RetrieveOriginalResourceType(ctx), c.Scheme())
	bldr.WatchesRawSource(source.Kind(c.cache, obj,
		handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), owner, handler.OnlyControllerOwner())))
}

// EnqueueTracked returns an event handler that enqueues every resource that tracks the object of the event. Watch each
// tracked kind with it, in the Setup function of the reconciler that tracks the kind:
//
//	bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
//
// Call it with the context that was passed to Setup. It panics if the context has no config.
//
// If the handler is passed directly to a watch, the root reconciler knows that the kind is watched, see
// [Config.TrackAndGet]. The handler can also be part of another handler.
func EnqueueTracked(ctx context.Context) handler.EventHandler {
	config := RetrieveConfigOrDie(ctx)

	tracked := &trackedHandler{handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []Request {
		observers, err := config.Tracker.GetObservers(obj)
		if err != nil {
			logUnlessQuiet(ctx, err, "unable to get tracked requests")
			return nil
		}
		requests := make([]Request, len(observers))
		for i := range observers {
			requests[i].NamespacedName = observers[i]
		}
		return requests
	})}
	scopeFrom(ctx).watched.addHandler(tracked)
	return tracked
}

// trackedHandler is the handler that EnqueueTracked returns. Its type identifies it in a watch.
type trackedHandler struct{ handler.EventHandler }

// CauseType returns the type of the causes of what the handler enqueues.
func (*trackedHandler) CauseType() observe.CauseType { return observe.CauseTracked }

// warnUnwatched reports a reference to an object of a kind that the controller does not watch. Once for each kind, it
// logs the line of code to add.
func (c Config) warnUnwatched(ctx context.Context, watched *watched, kind schema.GroupKind, tracked runtime.Object) {
	c.Hub().Report(ctx, &observe.TrackedUnwatched{Reconciler: watched.reconciler, Kind: kind})
	if watched.warnOnce(kind) {
		line := c.watchLine(ctx, tracked)
		c.Hub().Report(ctx, &observe.ProblemFound{Path: step.Names(ctx), Text: fmt.Sprintf(
			"objects of kind %s are tracked and not watched, so their changes do not reconcile those that track them; "+
				"add to Setup: %s", kind, line)})
		logr.FromContextOrDiscard(ctx).Info("the kind of a tracked object is not watched, its changes will not trigger the "+
			"resource",
			"kind", kind.String(), "add to Setup", line)
	}
}

// warnDivided reports, once for each kind, a reference to an object of a kind that is divided among replicas.
func (c Config) warnDivided(ctx context.Context, watched *watched, kind schema.GroupKind) {
	type divided schema.GroupKind
	if watched == nil {
		return
	}
	if _, warned := watched.warned.LoadOrStore(divided(kind), true); warned {
		return
	}
	text := fmt.Sprintf("objects of kind %s are tracked, but this replica sees only its share of them: remove the kind "+
		"from the Kinds of Config.Shard", kind)
	c.Hub().Report(ctx, &observe.ProblemFound{Path: step.Names(ctx), Text: text})
	logr.FromContextOrDiscard(ctx).Info(text)
}

// watchLine returns a line of Go that watches the kind of an object, or of the objects in a list.
func (c Config) watchLine(ctx context.Context, tracked runtime.Object) string {
	gvk, err := c.GroupVersionKindFor(tracked)
	if err != nil {
		return ""
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	object, method := c.goLiteral(gvk, tracked)
	if root := scopeFrom(ctx).originalConfig; root != nil && root.cache != c.cache {
		return fmt.Sprintf(
			"bldr.WatchesRawSource(source.Kind[client.Object](cluster.GetCache(), %s, reconcilers.EnqueueTracked(ctx)))", object,
		)
	}
	return fmt.Sprintf("bldr.%s(%s, reconcilers.EnqueueTracked(ctx))", method, object)
}

// goLiteral returns a Go literal of an object of a kind, in the form in which it was tracked, and the builder method
// that watches it.
func (c Config) goLiteral(gvk schema.GroupVersionKind, tracked runtime.Object) (literal, method string) {
	method = "Watches"
	_, untyped := tracked.(runtime.Unstructured)
	made, err := c.Scheme().New(gvk)
	switch tracked.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		if err != nil {
			return fmt.Sprintf(
				"&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: %q, Kind: %q}}", gvk.GroupVersion(), gvk.Kind,
			), method
		}
		method = "WatchesMetadata"
	default:
		if err != nil || untyped || duck.IsDuck(tracked, c.Scheme()) {
			return fmt.Sprintf(
				`&unstructured.Unstructured{Object: map[string]any{"apiVersion": %q, "kind": %q}}`, gvk.GroupVersion(), gvk.Kind,
			), method
		}
	}
	return "&" + goName(reflect.TypeOf(made).Elem()) + "{}", method
}

var apiVersion = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)

// goName returns the name of a type with its usual import name, for example corev1 for k8s.io/api/core/v1.
func goName(t reflect.Type) string {
	dir, name := path.Split(t.PkgPath())
	if apiVersion.MatchString(name) {
		group := path.Base(dir)
		if end := strings.IndexFunc(group, func(r rune) bool { return r == '.' || r == '-' }); end > 0 {
			group = group[:end]
		}
		return group + name + "." + t.Name()
	}
	return t.String()
}

// newEmpty returns a new value of the struct that T points to. It returns nil if T is an interface.
func newEmpty[T any]() T {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		var zero T
		return zero
	}
	return reflect.New(t.Elem()).Interface().(T)
}

// nameKind sets the kind of an object that does not carry one. Caches store typed objects without a kind.
func nameKind(obj client.Object, gvk schema.GroupVersionKind) {
	if kind := obj.GetObjectKind(); kind.GroupVersionKind().Empty() {
		kind.SetGroupVersionKind(gvk)
	}
}

// typeName returns the kind of an object. If the object does not carry a kind, typeName returns the name of its Go type
// without type arguments.
func typeName(obj any) string {
	if nilcheck.IsNilPointer(obj) {
		return ""
	}
	if obj, ok := obj.(runtime.Object); ok {
		if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
			return kind
		}
	}
	t := reflect.TypeOf(obj)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

// isGeneric reports whether obj has a generic Go type. The name of such a type is not the kind.
func isGeneric(obj any) bool {
	return !nilcheck.IsNilPointer(obj) && strings.Contains(reflect.TypeOf(obj).String(), "[")
}

// watchable returns the object to pass to a watch. Ducks are watched as unstructured objects of their kind.
func watchable(obj client.Object, scheme *runtime.Scheme) client.Object {
	if !duck.IsDuck(obj, scheme) {
		return obj
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return u
}

// listItems returns the items of a list without copying them.
func listItems[T client.Object](list client.ObjectList) ([]T, error) {
	items := []T{}
	err := meta.EachListItem(list, func(obj runtime.Object) error {
		item, ok := obj.(T)
		if !ok {
			return fmt.Errorf("items of %T must be %T, got %T", list, item, obj)
		}
		items = append(items, item)
		return nil
	})
	return items, err
}

// kindOfChild returns the kind of the children of a reconciler. Its error says what to add to the scheme.
func kindOfChild(config Config, reconciler string, child client.Object) (schema.GroupVersionKind, error) {
	gvk, err := config.GroupVersionKindFor(child)
	if err != nil {
		return gvk, fmt.Errorf(
			"%s: the scheme does not have the kind of %T: add its package with AddToScheme, or set apiVersion and kind in "+
				"ChildType if it is a duck type: %w", reconciler, child, err,
		)
	}
	return gvk, nil
}

// listsOf returns an error if the scheme does not have the list of a kind that a cache is going to list.
func listsOf(scheme *runtime.Scheme, watched runtime.Object) error {
	gvk, err := apiutil.GVKForObject(watched, scheme)
	if err != nil || isLight(watched) || !scheme.Recognizes(gvk) {
		return nil //nolint:nilerr // the builder returns a better error
	}
	list := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	if scheme.Recognizes(list) {
		return nil
	}
	return fmt.Errorf(
		"the scheme has %s, but not %s, without which no cache can watch it: add &%s{} to SchemeBuilder.Register",
		gvk.Kind, list.Kind, list.Kind,
	)
}
