// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
	"trueup.dev/validation"
)

// root holds the setup settings that all root reconcilers share.
type root struct {
	// kind is the Go name of the reconciler. Errors contain it.
	kind string
	name string
	// named reports whether the user set the name.
	named        bool
	resourceType client.Object
	config       Config
}

func (r root) logger(ctx context.Context) context.Context {
	log := logr.FromContextOrDiscard(ctx).WithName(r.name)
	return logr.NewContext(ctx, log.WithValues("resourceType", resourceTypeName(r.config, r.resourceType)))
}

// validate validates the whole tree and returns an error that lists every problem.
func (r root) validate(ctx context.Context, reconciler validation.Validator) error {
	err := everyProblem(reconciler.Validate(validation.WithRecursive(ctx)))
	if r.config.Client == nil {
		err = errors.Join(err, fmt.Errorf("%s %q must define Config", r.kind, r.name))
	}
	return err
}

// builder returns a builder for a controller of the resource. A name that the user set also names the controller, in
// logs and metrics. Several controllers for one kind can then share a manager.
func (r root) builder(mgr Manager, options []builder.ForOption) *Builder {
	watched := watchable(r.resourceType, r.config.Scheme())
	if r.config.cache == mgr.GetCache() {
		r.config.guard.Watch(watched)
	}
	bldr := builder.ControllerManagedBy(mgr).For(watched, options...)
	if r.named {
		bldr.Named(r.name)
	}
	return observe.Controller(bldr)
}

// reportDeferred reports that a request continues later, or that it no longer waits.
func (r root) reportDeferred(ctx context.Context, reason observe.DeferReason) {
	r.config.Hub().Report(ctx, &observe.Deferred{Reconciler: r.name, Reason: reason})
}

// reportLoop reports a hot loop of a request.
func (r root) reportLoop(ctx context.Context, loop observe.LoopFound) {
	loop.Reconciler = r.name
	r.config.Hub().Report(ctx, &loop)
}

// hooks are the user's functions that run before and after each request.
type hooks struct {
	before func(ctx context.Context, req Request) (context.Context, Result, error)
	after  func(ctx context.Context, req Request, res Result, err error) (Result, error)
}

// call runs do between the hooks. An error from before ends the request.
func (h hooks) call(
	ctx context.Context, req Request, do func(ctx context.Context) (Result, error),
) (Result, error) {
	before := Result{}
	if h.before != nil {
		replaced, result, err := h.before(ctx, req)
		if err != nil {
			return result, err
		}
		if replaced != nil {
			ctx = replaced
		}
		before = result
	}
	result, err := do(ctx)
	result = AggregateResults(before, result)
	if h.after != nil {
		return h.after(ctx, req, result, err)
	}
	return result, err
}

// resourceTypeName returns the group and kind for log lines. If they are unknown, it returns the type name.
func resourceTypeName(config Config, resourceType client.Object) string {
	if config.Client != nil && !nilcheck.IsNilPointer(resourceType) {
		if gvk, err := config.GroupVersionKindFor(resourceType); err == nil {
			return gvk.GroupKind().String()
		}
	}
	return typeName(resourceType)
}

// resourceName returns the kind of a resource. The default name of its reconciler contains it.
func resourceName(config Config, resourceType client.Object) string {
	if isGeneric(resourceType) && config.Client != nil {
		if gvk, err := config.GroupVersionKindFor(resourceType); err == nil {
			return gvk.Kind
		}
	}
	return typeName(resourceType)
}

// describe describes what all roots share.
func (r root) describe(n *graph.Node, w *watched) {
	n.Root(schemeOf(r.config), r.resourceType, w.registered())
	n.Step(r.name)
	n.ReadsResource()
	n.Events()
}

// schemeOf returns nil for a config without a client.
func schemeOf(config Config) *runtime.Scheme {
	if config.Client == nil {
		return nil
	}
	return config.Scheme()
}
