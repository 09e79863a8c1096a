// SPDX-License-Identifier: Apache-2.0

package informer

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

	"trueup.dev/resource"
	"trueup.dev/validation"
)

// Options selects the objects of an informer and configures it. The API server selects by namespace, labels
// and fields. The zero value selects all objects.
type Options struct {
	// Namespaces are the namespaces to watch, for namespaced kinds. Default: all.
	Namespaces []string
	// LabelFilters are label selectors, for example `team=blue` or `stage in (dev, prod)`. Objects must match all of
	// them. Default: none.
	LabelFilters []string
	// FieldSelectors are field selectors, for example `metadata.name=mine`. Which other fields are supported depends
	// on the kind. Objects must match all of them. Default: none.
	FieldSelectors []string
	// ShardFilter selects the objects of one of several instances, see [Shard]. It must depend only on properties that
	// never change. Other objects are neither readable from the informer nor handled, but the API server still sends
	// them. Each instance needs its own lease, or no leader election. Default: all objects.
	ShardFilter func(object client.Object) bool
	// CacheResyncInterval is the time after which handlers receive all objects again, even if unchanged, see
	// [trueup.dev/operator.WithEdge.Resync]. Default: 10 hours.
	CacheResyncInterval time.Duration
	// MetadataOnly keeps only the metadata of objects, to save memory. Objects are of type
	// *metav1.PartialObjectMetadata. Default: false.
	MetadataOnly bool
	// MaxConcurrentWorkers is the maximum number of objects of a kind that an App handles at the same time, unless the
	// kind has its own number. An informer itself ignores it. Default: the value of the manager, which is 1 unless set.
	MaxConcurrentWorkers uint64
	// ErrorHandler is called when a list or a watch fails, and in an App also for every failed attempt of a handler.
	// The informer and the handler are retried in any case. Default: errors are only logged.
	ErrorHandler func(ctx context.Context, err error)
}

// DefaultResyncInterval is the default of [Options.CacheResyncInterval], and of the caches of controller-runtime.
const DefaultResyncInterval = 10 * time.Hour

// selection is the validated form of Options. Selectors are nil if not set.
type selection struct {
	object client.Object
	labels labels.Selector
	fields fields.Selector
	resync time.Duration
}

// selection checks the options and returns every problem.
func (o Options) selection(kind resource.Kind) (selection, error) {
	if err := kind.Validate(); err != nil {
		return selection{}, err
	}
	s := selection{object: kind.ZeroValue(), resync: o.CacheResyncInterval}
	if o.MetadataOnly {
		s.object = &metav1.PartialObjectMetadata{}
	}
	s.object.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind())
	if s.resync == 0 {
		s.resync = DefaultResyncInterval
	}
	var problems []error
	if err := o.Validate(context.Background()); err != nil {
		problems = append(problems, err)
	}
	if len(o.Namespaces) > 0 && kind.Scope() == resource.ClusterScope {
		problems = append(problems, errors.New("the kind is cluster-scoped, Namespaces must be empty"))
	}
	if len(problems) > 0 {
		return selection{}, fmt.Errorf("informer of %s: %w", kind, errors.Join(problems...))
	}
	// Each selector is valid, so the combined selector is valid.
	var err error
	if len(o.LabelFilters) > 0 {
		s.labels, err = labels.Parse(strings.Join(o.LabelFilters, ","))
	}
	if err == nil && len(o.FieldSelectors) > 0 {
		s.fields, err = fields.ParseSelector(strings.Join(o.FieldSelectors, ","))
	}
	return s, err
}

var _ validation.Validator = Options{}

// Validate returns every problem with its field, such as LabelFilters[1].
func (o Options) Validate(context.Context) error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for i, namespace := range o.Namespaces {
		if namespace == "" {
			add("Namespaces[%d]: must not be empty; to select all namespaces, leave Namespaces empty", i)
		} else if faults := kvalidation.IsDNS1123Label(namespace); len(faults) > 0 {
			add("Namespaces[%d]: %q is not the name of a namespace: %s", i, namespace, strings.Join(faults, "; "))
		} else if first := slices.Index(o.Namespaces, namespace); first < i {
			add("Namespaces[%d]: %q is a duplicate of Namespaces[%d]", i, namespace, first)
		}
	}
	for i, filter := range o.LabelFilters {
		if strings.TrimSpace(filter) == "" {
			add("LabelFilters[%d]: must not be empty", i)
		} else if _, err := labels.Parse(filter); err != nil {
			add("LabelFilters[%d]: %q is not a label selector: %w", i, filter, err)
		}
	}
	for i, text := range o.FieldSelectors {
		if strings.TrimSpace(text) == "" {
			add("FieldSelectors[%d]: must not be empty", i)
		} else if selector, err := fields.ParseSelector(text); err != nil {
			add("FieldSelectors[%d]: %q is not a field selector: %w", i, text, err)
		} else if slices.ContainsFunc(selector.Requirements(), func(r fields.Requirement) bool {
			return strings.TrimSpace(r.Field) == ""
		}) {
			add("FieldSelectors[%d]: %q does not name a field", i, text)
		}
	}
	if o.CacheResyncInterval < 0 {
		add("CacheResyncInterval: must not be negative, got %s", o.CacheResyncInterval)
	}
	return errors.Join(problems...)
}

// cacheOptions returns the options of controller-runtime's cache for these namespaces, or for all if namespaces is
// empty.
func (s selection) cacheOptions(cluster cluster.Cluster, options Options, namespaces []string) cache.Options {
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

func (o Options) onWatchError(ctx context.Context, reflector *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	if o.ErrorHandler != nil {
		o.ErrorHandler(ctx, err)
	}
}
