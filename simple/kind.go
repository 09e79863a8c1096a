// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"cmp"
	"context"
	"errors"
	"time"

	"trueup.dev/informer"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/validation"
)

// AppManagedKind is a kind of the app, in one version. At most one of Watcher, Reconciler and SubReconciler is set:
// the handler. All fields but Kind are optional. A kind without a handler is part of the app and of its manifest and
// may have webhooks, but is not watched.
type AppManagedKind struct {
	// Kind is the kind. Required.
	Kind resource.Kind
	// Watcher is the handler with one method for each type of event.
	Watcher operator.ResourceWatcher
	// Reconciler is the handler with one method for all events.
	Reconciler operator.Reconciler
	// SubReconciler is a tree of reconcilers. As below a [reconcilers.ResourceReconciler], it is called for every
	// request, sets its own finalizer, and is retried without a limit. [operator.Widen] converts a tree for one Go
	// type.
	SubReconciler reconcilers.SubReconciler[resource.Object]
	// Mutator changes objects before they are stored. See [App.WebhookConfigurations].
	Mutator KindMutator
	// Validator allows or denies requests for objects. See [App.WebhookConfigurations].
	Validator KindValidator
	// CustomRoutes are handlers of HTTP requests for an object of the kind, see [AppCustomRouteHandlers].
	CustomRoutes AppCustomRouteHandlers
	// ReconcileOptions configure the handler.
	ReconcileOptions ReconcileOptions
}

// AppUnmanagedKind is a kind of another owner. Exactly one of Watcher, Reconciler and SubReconciler is set: the
// handler. The app does not write objects of the kind, nor their status, except for the finalizer if UseOpinionated is
// set. The handler itself may write them.
type AppUnmanagedKind struct {
	// Kind is the kind. Required.
	Kind resource.Kind
	// Watcher is the handler with one method for each type of event.
	Watcher operator.ResourceWatcher
	// Reconciler is the handler with one method for all events.
	Reconciler operator.Reconciler
	// SubReconciler is a tree of reconcilers, see [AppManagedKind].
	SubReconciler reconcilers.SubReconciler[resource.Object]
	// ReconcileOptions configure the handler.
	ReconcileOptions ReconcileOptions
}

// ReconcileOptions configure when a handler is called, and for which objects.
//
// A Watcher or Reconciler of a managed kind is wrapped in an [operator.Opinionated], unless UsePlain is set. For an
// unmanaged kind it is wrapped only if UseOpinionated is set. A plain handler misses deletions while the app is down.
// If the Watcher or Reconciler is or wraps an [operator.Opinionated], it keeps its own finalizer, and these options do
// not change it; RetryPolicy and React of these options override its own.
type ReconcileOptions struct {
	// UsePlain calls the handler of a managed kind without a finalizer. Defaults to false.
	UsePlain bool
	// UseOpinionated adds a finalizer to objects of an unmanaged kind, which keeps them until the handler has handled
	// their deletion. Defaults to false.
	UseOpinionated bool
	// Finalizer is the name of the finalizer. Defaults to the name that the FinalizerSupplier of the app returns. A name
	// without a domain, such as the names of Grafana App SDK, is allowed for custom resources: the API server accepts it
	// with a warning.
	Finalizer string
	// FinalizerAliases are former names of the finalizer. They are replaced by Finalizer.
	FinalizerAliases []string
	// InProgressFinalizer marks objects whose first call has not succeeded, see [operator.Opinionated]. Defaults to
	// none.
	InProgressFinalizer string

	// WhileServed is for a kind that the API server may not serve yet, or no longer. The app starts, and is ready,
	// without the kind. The handler is called while the kind is served, see [operator.Controller]. Defaults to false:
	// Run returns an error if the kind is not served.
	WhileServed bool

	// Namespace is the namespace to watch. Defaults to the Namespaces of the app.
	Namespace string
	// LabelFilters are label selectors. Objects must match all of them. Defaults to the selectors of the app.
	LabelFilters []string
	// FieldSelectors are field selectors. Objects must match all of them. Defaults to the selectors of the app.
	FieldSelectors []string
	// CacheResyncInterval is the time after which the handler is called again for unchanged objects. Defaults to the
	// interval of the app. If neither is set, it is not called for unchanged objects.
	CacheResyncInterval time.Duration
	// InformerSupplier makes the informer of this kind. Defaults to the supplier of the app.
	InformerSupplier informer.Supplier

	// React selects the changes that count. Defaults to [operator.ReactSpec] for opinionated handlers, and to
	// [operator.ReactAny] for others.
	React operator.React
	// RetryPolicy decides when to call the handler again after an error. Defaults to the policy of the app.
	RetryPolicy operator.RetryPolicy
	// RetryDequeuePolicy decides whether a change replaces a retry. Defaults to the policy of the app.
	RetryDequeuePolicy operator.RetryDequeuePolicy
	// OnError is called for every failed attempt of the handler, whether it is retried or not, before the ErrorHandler
	// of the app's InformerOptions. Optional.
	OnError func(ctx context.Context, object resource.Object, err error)
	// OnExhausted is called when RetryPolicy has given up on an object. Optional.
	OnExhausted func(ctx context.Context, object resource.Object, err error)
	// MaxConcurrentReconciles is the maximum number of objects that are handled at the same time. Defaults to
	// MaxConcurrentWorkers of the app's InformerOptions, and then to the value of the manager, which is 1 unless set.
	MaxConcurrentReconciles int
}

// handled is a kind with a handler.
type handled struct {
	// field is the field of the config, for messages.
	field         string
	managed       bool
	kind          resource.Kind
	watcher       operator.ResourceWatcher
	reconciler    operator.Reconciler
	subReconciler reconcilers.SubReconciler[resource.Object]
	options       ReconcileOptions
	// opinionated reports whether the app sets a finalizer.
	opinionated bool
	finalizer   string
	// name is the name of the controller, unique within the app.
	name string
}

// given returns the handler if it is or wraps an Opinionated.
func (h *handled) given() (*operator.Opinionated[resource.Object], bool) {
	if h.watcher != nil {
		return operator.AsOpinionated(h.watcher)
	}
	if _, ok := h.opinionatedReconciler(); ok {
		return nil, false
	}
	return operator.AsOpinionated(h.reconciler)
}

// opinionatedReconciler returns the handler if it is an OpinionatedReconciler that gets its finalizer from the app.
func (h *handled) opinionatedReconciler() (*operator.OpinionatedReconciler, bool) {
	r, ok := h.reconciler.(*operator.OpinionatedReconciler)
	return r, ok && r != nil && r.Finalizer == ""
}

// handler returns the reconciler that calls the handler.
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
	if r, ok := h.opinionatedReconciler(); ok {
		return operator.AsSubReconciler[resource.Object](r.Reconciler)
	}
	return operator.AsSubReconciler[resource.Object](h.reconciler)
}

// configure applies the config and the options of the kind.
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

// onError returns a function that calls, for each failed attempt, the OnError of the handler, of the kind and of the
// app. It returns nil if none is set.
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

// informerOptions returns the options of the app, overridden by the options of the kind.
func (h *handled) informerOptions(options informer.Options) informer.Options {
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

// selectsAll reports whether its informer has all objects of the kind that the app watches.
func (h *handled) selectsAll(config *AppInformerConfig) bool {
	options := h.informerOptions(config.InformerOptions)
	return h.options.Namespace == "" && len(options.LabelFilters) == 0 && len(options.FieldSelectors) == 0 &&
		options.ShardFilter == nil
}

// takesAll reports whether the kind does not override the app's selection or informer.
func (h *handled) takesAll(config *AppInformerConfig) bool {
	o := &h.options
	return h.selectsAll(config) && o.CacheResyncInterval == 0 && o.InformerSupplier == nil &&
		!config.InformerOptions.MetadataOnly
}
