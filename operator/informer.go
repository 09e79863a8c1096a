// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	kvalidation "k8s.io/apimachinery/pkg/util/validation"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"trueup.dev/internal/nilcheck"
	"trueup.dev/resource"
	"trueup.dev/validation"
)

// Informer is where a controller has the objects of one kind from: it reads them from it, and is told by it what
// happens to them. It is a cache of controller-runtime for one kind; [NewInformer] makes one of any such cache.
//
// [WithInformer] and an [InformerController] start informers, and wait for them.
type Informer interface {
	cache.Cache
	// Object returns an empty object of the kind, in the form in which the informer has them: of a Go type, unstructured,
	// or metadata only. It must not be changed.
	Object() client.Object
}

// NewInformer makes a cache the informer of a kind. The cache belongs to the informer from then on. The object says
// which kind, and in which form; it needs its apiVersion and kind if it is unstructured or metadata only.
func NewInformer(objects cache.Cache, object client.Object) Informer {
	return informer{Cache: objects, object: object}
}

type informer struct {
	cache.Cache
	object client.Object
}

func (i informer) Object() client.Object { return i.object }

// isEmpty reports whether there is no cache.
func (i informer) isEmpty() bool { return nilcheck.IsNil(i.Cache) }

// CacheOf returns the cache that this is the informer of.
func (i informer) CacheOf(client.Object) cache.Cache { return i.Cache }

// InformerOptions tell which objects of a kind an informer has, and how. The API server does the selection. The zero
// value is for all objects.
type InformerOptions struct {
	// Namespaces are the namespaces to look at, for kinds that have any. Default: all.
	Namespaces []string
	// LabelFilters are label selectors, `team=blue` or `stage in (dev, prod)` for example. Objects have to match each.
	// Default: none.
	LabelFilters []string
	// FieldSelectors are field selectors, `metadata.name=mine` for example; what other fields can be selected depends on
	// the kind. Objects have to match each. Default: none.
	FieldSelectors []string
	// ShardFilter selects the objects that an instance of several handles, by what never changes, see [Shard]. Others are
	// neither read from the informer nor handled; the API server sends them all the same. Each instance needs a lease of
	// its own, or no leader election. Default: all objects.
	ShardFilter func(object client.Object) bool
	// CacheResyncInterval is the time after which all objects are told of again, though unchanged, see [WithEdge.Resync].
	// Default: 10 hours.
	CacheResyncInterval time.Duration
	// MetadataOnly leaves out all but the metadata of objects, to save memory: objects are of type
	// *metav1.PartialObjectMetadata. Default: false.
	MetadataOnly bool
	// ErrorHandler is called when a list or a watch has failed, and in an App for every attempt of a handler that has
	// failed. The informer and the handler are tried again by themselves, whatever it does. Default: errors are only
	// logged.
	ErrorHandler func(ctx context.Context, err error)
}

// InformerSupplier makes the informer of a kind. The cluster tells how to reach the API; a manager is one. The Go type
// of the kind has to be in the cluster's scheme. A supplier must heed all options, or return an error.
type InformerSupplier func(kind resource.Kind, cluster cluster.Cluster, options InformerOptions) (Informer, error)

// DefaultInformerSupplier makes informers that keep objects in memory, by the cache of controller-runtime. Managed
// fields are left out.
func DefaultInformerSupplier(kind resource.Kind, cluster cluster.Cluster, options InformerOptions) (Informer, error) {
	s, err := options.selection(kind)
	if err != nil {
		return nil, err
	}
	if nilcheck.IsNil(cluster) {
		return nil, fmt.Errorf("informer of %s must have a cluster", kind)
	}
	objects, err := cache.New(cluster.GetConfig(), s.cacheOptions(cluster, options, options.Namespaces))
	if err != nil {
		return nil, fmt.Errorf("make the informer of %s: %w", kind, err)
	}
	return sharded(NewInformer(objects, s.object), options.ShardFilter), nil
}

// MetadataOnlyInformerSupplier is [DefaultInformerSupplier] with [InformerOptions.MetadataOnly]: for kinds with very
// many or very large objects, whose handlers need no more than metadata, or read the few objects that they do need from
// the API server.
func MetadataOnlyInformerSupplier(
	kind resource.Kind, cluster cluster.Cluster, options InformerOptions,
) (Informer, error) {
	options.MetadataOnly = true
	return DefaultInformerSupplier(kind, cluster, options)
}

var (
	_ InformerSupplier = DefaultInformerSupplier
	_ InformerSupplier = MetadataOnlyInformerSupplier
)

// defaultResync is that of controller-runtime.
const defaultResync = 10 * time.Hour

// selection is what options select of a kind. Selectors are nil where there are none.
type selection struct {
	object client.Object
	labels labels.Selector
	fields fields.Selector
	resync time.Duration
}

// selection checks the options and returns every problem.
func (o InformerOptions) selection(kind resource.Kind) (selection, error) {
	if err := kind.Validate(); err != nil {
		return selection{}, err
	}
	s := selection{object: kind.ZeroValue(), resync: o.CacheResyncInterval}
	if o.MetadataOnly {
		s.object = &metav1.PartialObjectMetadata{}
	}
	s.object.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind())
	if s.resync == 0 {
		s.resync = defaultResync
	}
	var problems []error
	if err := o.Validate(context.Background()); err != nil {
		problems = append(problems, err)
	}
	if len(o.Namespaces) > 0 && kind.Scope() == resource.ClusterScope {
		problems = append(problems, errors.New("its objects belong to no namespace, so that Namespaces must be empty"))
	}
	if len(problems) > 0 {
		return selection{}, fmt.Errorf("informer of %s: %w", kind, errors.Join(problems...))
	}
	// Each is valid, so that all together are.
	var err error
	if len(o.LabelFilters) > 0 {
		s.labels, err = labels.Parse(strings.Join(o.LabelFilters, ","))
	}
	if err == nil && len(o.FieldSelectors) > 0 {
		s.fields, err = fields.ParseSelector(strings.Join(o.FieldSelectors, ","))
	}
	return s, err
}

var _ validation.Validator = InformerOptions{}

// Validate returns every problem by its field, such as LabelFilters[1].
func (o InformerOptions) Validate(context.Context) error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for i, namespace := range o.Namespaces {
		if namespace == "" {
			add("Namespaces[%d]: the name is empty, leave out Namespaces for all", i)
		} else if faults := kvalidation.IsDNS1123Label(namespace); len(faults) > 0 {
			add("Namespaces[%d]: %q is not the name of a namespace: %s", i, namespace, strings.Join(faults, "; "))
		} else if first := slices.Index(o.Namespaces, namespace); first < i {
			add("Namespaces[%d]: %q is at [%d] as well", i, namespace, first)
		}
	}
	for i, filter := range o.LabelFilters {
		if strings.TrimSpace(filter) == "" {
			add("LabelFilters[%d]: the selector is empty", i)
		} else if _, err := labels.Parse(filter); err != nil {
			add("LabelFilters[%d]: %q is not a label selector: %w", i, filter, err)
		}
	}
	for i, text := range o.FieldSelectors {
		if strings.TrimSpace(text) == "" {
			add("FieldSelectors[%d]: the selector is empty", i)
		} else if selector, err := fields.ParseSelector(text); err != nil {
			add("FieldSelectors[%d]: %q is not a field selector: %w", i, text, err)
		} else if slices.ContainsFunc(selector.Requirements(), func(r fields.Requirement) bool {
			return strings.TrimSpace(r.Field) == ""
		}) {
			add("FieldSelectors[%d]: %q does not name a field", i, text)
		}
	}
	if o.CacheResyncInterval < 0 {
		add("CacheResyncInterval: %s is negative", o.CacheResyncInterval)
	}
	return errors.Join(problems...)
}

// cacheOptions are those of controller-runtime's cache for some namespaces, all if there are none.
func (s selection) cacheOptions(cluster cluster.Cluster, options InformerOptions, namespaces []string) cache.Options {
	cacheOptions := cache.Options{
		HTTPClient:           cluster.GetHTTPClient(),
		Scheme:               cluster.GetScheme(),
		Mapper:               cluster.GetRESTMapper(),
		SyncPeriod:           &s.resync,
		DefaultLabelSelector: s.labels,
		DefaultFieldSelector: s.fields,
		DefaultTransform:     cache.TransformStripManagedFields(),
	}
	if options.ErrorHandler != nil {
		cacheOptions.DefaultWatchErrorHandler = options.onWatchError
	}
	for _, namespace := range namespaces {
		if cacheOptions.DefaultNamespaces == nil {
			cacheOptions.DefaultNamespaces = map[string]cache.Config{}
		}
		cacheOptions.DefaultNamespaces[namespace] = cache.Config{}
	}
	return cacheOptions
}

func (o InformerOptions) onWatchError(ctx context.Context, reflector *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	if o.ErrorHandler != nil {
		o.ErrorHandler(ctx, err)
	}
}
