// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"cmp"
	"context"
	"time"

	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// AppManagedKind is a kind of the app, in one version. At most one of Watcher, Reconciler and SubReconciler is set: the handler. All fields but Kind are
// optional: a kind without a handler is part of the app and of its manifest, may have webhooks, and is watched by nobody.
type AppManagedKind struct {
	// Kind is the kind. Required.
	Kind resource.Kind
	// Watcher is called for what happens to objects, in a function for each sort of event.
	Watcher operator.ResourceWatcher
	// Reconciler is called for what happens to objects, in one function.
	Reconciler operator.Reconciler
	// SubReconciler is a tree of reconcilers, called for every object whenever there is something to look at, as below a [reconcilers.ResourceReconciler]:
	// it does its own finalizer handling, and is retried without end. [operator.Widen] makes one of a tree for a Go type.
	SubReconciler reconcilers.SubReconciler[resource.Object]
	// Mutator changes objects before they are stored. See [App.WebhookConfigurations].
	Mutator KindMutator
	// Validator allows or denies what is done to objects. See [App.WebhookConfigurations].
	Validator KindValidator
	// ReconcileOptions are for the handler.
	ReconcileOptions ReconcileOptions
}

// AppUnmanagedKind is a kind of others. Exactly one of Watcher, Reconciler and SubReconciler is set: the handler. Nothing is written to objects, their status
// included, but for the finalizer if UseOpinionated is set, and what the handler writes itself.
type AppUnmanagedKind struct {
	// Kind is the kind. Required.
	Kind resource.Kind
	// Watcher is called for what happens to objects, in a function for each sort of event.
	Watcher operator.ResourceWatcher
	// Reconciler is called for what happens to objects, in one function.
	Reconciler operator.Reconciler
	// SubReconciler is a tree of reconcilers, see [AppManagedKind].
	SubReconciler reconcilers.SubReconciler[resource.Object]
	// ReconcileOptions are for the handler.
	ReconcileOptions ReconcileOptions
}

// ReconcileOptions tell when a handler is called, and for which objects.
//
// A Watcher or Reconciler of a managed kind is wrapped in an [operator.Opinionated], unless UsePlain is set; one of an unmanaged kind is not, unless
// UseOpinionated is set. What is plain misses deletions while the app is down.
type ReconcileOptions struct {
	// UsePlain calls the handler of a managed kind without any finalizer. Defaults to false.
	UsePlain bool
	// UseOpinionated keeps objects of an unmanaged kind by a finalizer until the handler has dealt with their deletion. Defaults to false.
	UseOpinionated bool
	// Finalizer is the name of the finalizer. Defaults to what the FinalizerSupplier of the app names.
	Finalizer string
	// FinalizerAliases are former names of the finalizer. They are replaced where they are found.
	FinalizerAliases []string
	// InProgressFinalizer marks objects whose first call has not succeeded, see [operator.Opinionated]. Defaults to none.
	InProgressFinalizer string

	// Namespace is where objects are watched, in place of the Namespaces of the app. Defaults to those.
	Namespace string
	// LabelFilters are label selectors, in place of those of the app. Objects have to match each. Default: those.
	LabelFilters []string
	// FieldSelectors are field selectors, in place of those of the app. Objects have to match each. Default: those.
	FieldSelectors []string
	// CacheResyncInterval is the time after which the handler is called again for objects that have not changed. Defaults to that of the app, if it has one; otherwise
	// it is not called.
	CacheResyncInterval time.Duration
	// InformerSupplier makes the informer of this kind. Defaults to that of the app.
	InformerSupplier operator.InformerSupplier

	// React selects what counts as a change. Defaults to [operator.ReactSpec] for what is opinionated, and otherwise to [operator.ReactAny].
	React operator.React
	// RetryPolicy tells when the handler is called again after an error. Defaults to that of the app.
	RetryPolicy operator.RetryPolicy
	// RetryDequeuePolicy tells whether a change replaces a retry. Defaults to that of the app.
	RetryDequeuePolicy operator.RetryDequeuePolicy
	// OnExhausted is called when RetryPolicy has given up on an object. Optional.
	OnExhausted func(ctx context.Context, object resource.Object, err error)
	// MaxConcurrentReconciles is how many objects are handled at the same time. Defaults to 1.
	MaxConcurrentReconciles int
}

// BasicReconcileOptions is [ReconcileOptions], under the name it has in Grafana App SDK for managed kinds.
type BasicReconcileOptions = ReconcileOptions

// UnmanagedKindReconcileOptions is [ReconcileOptions], under the name it has in Grafana App SDK for unmanaged kinds.
type UnmanagedKindReconcileOptions = ReconcileOptions

// handled is a kind with a handler.
type handled struct {
	// field of the config, for messages.
	field         string
	managed       bool
	kind          resource.Kind
	watcher       operator.ResourceWatcher
	reconciler    operator.Reconciler
	subReconciler reconcilers.SubReconciler[resource.Object]
	options       ReconcileOptions
	// opinionated is true for what is kept by a finalizer.
	opinionated bool
	finalizer   string
	// name of the controller, unique within the app.
	name string
}

// handler returns what calls the handler.
func (h *handled) handler(config *AppInformerConfig) reconcilers.SubReconciler[resource.Object] {
	switch {
	case h.subReconciler != nil:
		return h.subReconciler
	case h.opinionated:
		return h.opinionatedHandler(config)
	}
	return h.plainHandler(config)
}

func (h *handled) opinionatedHandler(config *AppInformerConfig) *operator.Opinionated[resource.Object] {
	plain := h.plainHandler(config)
	plain.React = cmp.Or(plain.React, operator.ReactSpec)
	return &operator.Opinionated[resource.Object]{
		Finalizer:           h.finalizer,
		Aliases:             h.options.FinalizerAliases,
		InProgressFinalizer: h.options.InProgressFinalizer,
		Handler:             plain,
	}
}

func (h *handled) plainHandler(config *AppInformerConfig) *operator.WithEdge[resource.Object] {
	var edge *operator.WithEdge[resource.Object]
	if h.watcher != nil {
		edge = operator.WatcherReconciler(h.watcher)
	} else {
		edge = operator.AsSubReconciler[resource.Object](h.reconciler)
	}
	edge.Name = h.name
	edge.React = h.options.React
	edge.Resync = h.informerOptions(config.InformerOptions).CacheResyncInterval > 0
	edge.OnExhausted = h.options.OnExhausted
	for _, policy := range []operator.RetryPolicy{operator.DefaultRetryPolicy, config.RetryPolicy, h.options.RetryPolicy} {
		if policy != nil {
			edge.RetryPolicy = policy
		}
	}
	for _, policy := range []operator.RetryDequeuePolicy{config.RetryDequeuePolicy, h.options.RetryDequeuePolicy} {
		if policy != nil {
			edge.RetryDequeuePolicy = policy
		}
	}
	return edge
}

// informerOptions are those of the app, but for what the kind has of its own.
func (h *handled) informerOptions(options operator.InformerOptions) operator.InformerOptions {
	if h.kind.Scope() == resource.ClusterScope {
		options.Namespaces = nil
	}
	if h.options.Namespace != "" {
		options.Namespaces = []string{h.options.Namespace}
	}
	if h.options.LabelFilters != nil {
		options.LabelFilters = h.options.LabelFilters
	}
	if h.options.FieldSelectors != nil {
		options.FieldSelectors = h.options.FieldSelectors
	}
	if h.options.CacheResyncInterval != 0 {
		options.CacheResyncInterval = h.options.CacheResyncInterval
	}
	return options
}

// selectsAll is true when its informer has all objects of the kind that the app looks at.
func (h *handled) selectsAll(config *AppInformerConfig) bool {
	options := h.informerOptions(config.InformerOptions)
	return h.options.Namespace == "" && len(options.LabelFilters) == 0 && len(options.FieldSelectors) == 0
}

// takesAll is true when all objects of the kind are watched that the app looks at, and in no special way.
func (h *handled) takesAll(config *AppInformerConfig) bool {
	o := &h.options
	return h.selectsAll(config) && o.CacheResyncInterval == 0 && o.InformerSupplier == nil && !config.InformerOptions.MetadataOnly
}
