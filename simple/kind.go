// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"cmp"
	"context"
	"errors"
	"time"

	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/validation"
)

// AppManagedKind is a kind of the app, in one version. At most one of Watcher, Reconciler and SubReconciler is set: the
// handler. All fields but Kind are optional: a kind without a handler is part of the app and of its manifest, may have
// webhooks, and is watched by nobody.
type AppManagedKind struct {
	// Kind is the kind. Required.
	Kind resource.Kind
	// Watcher is called for what happens to objects, in a function for each sort of event.
	Watcher operator.ResourceWatcher
	// Reconciler is called for what happens to objects, in one function.
	Reconciler operator.Reconciler
	// SubReconciler is a tree of reconcilers, called for every object whenever there is something to look at, as below a
	// [reconcilers.ResourceReconciler]: it does its own finalizer handling, and is retried without end. [operator.Widen]
	// makes one of a tree for a Go type.
	SubReconciler reconcilers.SubReconciler[resource.Object]
	// Mutator changes objects before they are stored. See [App.WebhookConfigurations].
	Mutator KindMutator
	// Validator allows or denies what is done to objects. See [App.WebhookConfigurations].
	Validator KindValidator
	// ReconcileOptions are for the handler.
	ReconcileOptions ReconcileOptions
}

// AppUnmanagedKind is a kind of others. Exactly one of Watcher, Reconciler and SubReconciler is set: the handler.
// Nothing is written to objects, their status included, but for the finalizer if UseOpinionated is set, and what the
// handler writes itself.
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
// A Watcher or Reconciler of a managed kind is wrapped in an [operator.Opinionated], unless UsePlain is set; one of an
// unmanaged kind is not, unless UseOpinionated is set. What is plain misses deletions while the app is down. A Watcher
// or Reconciler that is an [operator.Opinionated] itself, or is made of one, keeps its own finalizer, whatever these
// options say; RetryPolicy and React of these options go before its own.
type ReconcileOptions struct {
	// UsePlain calls the handler of a managed kind without any finalizer. Defaults to false.
	UsePlain bool
	// UseOpinionated keeps objects of an unmanaged kind by a finalizer until the handler has dealt with their deletion.
	// Defaults to false.
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
	// CacheResyncInterval is the time after which the handler is called again for objects that have not changed. Defaults
	// to that of the app, if it has one; otherwise it is not called.
	CacheResyncInterval time.Duration
	// InformerSupplier makes the informer of this kind. Defaults to that of the app.
	InformerSupplier operator.InformerSupplier

	// React selects what counts as a change. Defaults to [operator.ReactSpec] for what is opinionated, and otherwise to
	// [operator.ReactAny].
	React operator.React
	// RetryPolicy tells when the handler is called again after an error. Defaults to that of the app.
	RetryPolicy operator.RetryPolicy
	// RetryDequeuePolicy tells whether a change replaces a retry. Defaults to that of the app.
	RetryDequeuePolicy operator.RetryDequeuePolicy
	// OnError is called for every attempt of the handler that has failed, whether it is tried again or not, before the
	// ErrorHandler of the app's InformerOptions. Optional.
	OnError func(ctx context.Context, object resource.Object, err error)
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

// given returns the watcher or reconciler if that is opinionated itself.
func (h *handled) given() (*operator.Opinionated[resource.Object], bool) {
	if h.watcher != nil {
		return operator.AsOpinionated(h.watcher)
	}
	return operator.AsOpinionated(h.reconciler)
}

// handler returns what calls the handler.
func (h *handled) handler(config *AppInformerConfig) reconcilers.SubReconciler[resource.Object] {
	if h.subReconciler != nil {
		if h.options.OnError == nil && config.InformerOptions.ErrorHandler == nil {
			return h.subReconciler
		}
		return &reportingTree{SubReconciler: h.subReconciler, report: h.onError(config, nil)}
	}
	if given, ok := h.given(); ok {
		if given.Handler != nil {
			h.configure(given.Handler, config)
		}
		return given
	}
	edge := h.plain()
	h.configure(edge, config)
	if !h.opinionated {
		return edge
	}
	edge.React = cmp.Or(edge.React, operator.ReactSpec)
	return &operator.Opinionated[resource.Object]{
		Finalizer:           h.finalizer,
		Aliases:             h.options.FinalizerAliases,
		InProgressFinalizer: h.options.InProgressFinalizer,
		Handler:             edge,
	}
}

func (h *handled) plain() *operator.WithEdge[resource.Object] {
	if h.watcher != nil {
		return operator.WatcherReconciler(h.watcher)
	}
	return operator.AsSubReconciler[resource.Object](h.reconciler)
}

// configure sets what the config and the options of the kind say.
func (h *handled) configure(edge *operator.WithEdge[resource.Object], config *AppInformerConfig) {
	edge.Name = h.name
	edge.React = cmp.Or(h.options.React, edge.React)
	edge.Resync = edge.Resync || h.informerOptions(config.InformerOptions).CacheResyncInterval > 0
	edge.OnError = h.onError(config, edge.OnError)
	if h.options.OnExhausted != nil {
		edge.OnExhausted = h.options.OnExhausted
	}
	for _, policy := range []operator.RetryPolicy{
		operator.DefaultRetryPolicy, config.RetryPolicy, edge.RetryPolicy, h.options.RetryPolicy,
	} {
		if policy != nil {
			edge.RetryPolicy = policy
		}
	}
	for _, policy := range []operator.RetryDequeuePolicy{
		config.RetryDequeuePolicy, edge.RetryDequeuePolicy, h.options.RetryDequeuePolicy,
	} {
		if policy != nil {
			edge.RetryDequeuePolicy = policy
		}
	}
}

// onError returns what is called for each attempt that fails: the handler's own function, that of the kind and that of
// the app. It is nil when there is none.
func (h *handled) onError(
	config *AppInformerConfig, own func(ctx context.Context, object resource.Object, err error),
) func(ctx context.Context, object resource.Object, err error) {
	ofKind, ofApp := h.options.OnError, config.InformerOptions.ErrorHandler
	if own == nil && ofKind == nil && ofApp == nil {
		return nil
	}
	return func(ctx context.Context, object resource.Object, err error) {
		for _, hook := range []func(context.Context, resource.Object, error){own, ofKind} {
			if hook != nil {
				hook(ctx, object, err)
			}
		}
		if ofApp != nil {
			ofApp(ctx, err)
		}
	}
}

// reportingTree calls a function for each failure of a tree of reconcilers.
type reportingTree struct {
	reconcilers.SubReconciler[resource.Object]
	report func(ctx context.Context, object resource.Object, err error)
}

func (r *reportingTree) Validate(ctx context.Context) error {
	if v, ok := r.SubReconciler.(validation.Validator); ok {
		return v.Validate(ctx)
	}
	return nil
}

func (r *reportingTree) Reconcile(ctx context.Context, object resource.Object) (reconcilers.Result, error) {
	result, err := r.SubReconciler.Reconcile(ctx, object)
	if err != nil && !errors.Is(err, reconcilers.ErrHaltSubReconcilers) && !errors.Is(err, reconcilers.ErrRetryAfter) {
		r.report(ctx, object, err)
	}
	return result, err
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
	return h.options.Namespace == "" && len(options.LabelFilters) == 0 && len(options.FieldSelectors) == 0 &&
		options.ShardFilter == nil
}

// takesAll is true when all objects of the kind are watched that the app looks at, and in no special way.
func (h *handled) takesAll(config *AppInformerConfig) bool {
	o := &h.options
	return h.selectsAll(config) && o.CacheResyncInterval == 0 && o.InformerSupplier == nil &&
		!config.InformerOptions.MetadataOnly
}
