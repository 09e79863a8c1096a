// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/internal/engine/registration"
	"trueup.dev/internal/objects/nilcheck"
)

// setupFunc sets up a part of a reconciler.
type setupFunc func(ctx context.Context, mgr Manager, bldr *Builder) error

// setUp validates a reconciler and then runs parts in order, with the name of the reconciler in the logger. It skips
// nil parts.
func setUp(
	ctx context.Context, mgr Manager, bldr *Builder, name string, validate func(context.Context) error, parts ...setupFunc,
) error {
	if err := validate(ctx); err != nil {
		return everyProblem(err)
	}
	ctx = logr.NewContext(ctx, logr.FromContextOrDiscard(ctx).WithName(name))
	for _, part := range parts {
		if part == nil {
			continue
		}
		if err := part(ctx, mgr, bldr); err != nil {
			return err
		}
	}
	return nil
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

// nested returns the function that sets up a nested reconciler.
func nested[T client.Object](reconciler SubReconciler[T]) setupFunc {
	if nilcheck.IsNilPointer(reconciler) {
		return nil
	}
	return func(ctx context.Context, mgr Manager, bldr *Builder) error {
		return setUpNested(ctx, mgr, bldr, reconciler)
	}
}

// setUpNested sets up a nested reconciler. It records that the watches that are added belong to it.
func setUpNested[T client.Object](ctx context.Context, mgr Manager, bldr *Builder, reconciler SubReconciler[T]) error {
	defer registration.Enter(ctx, reconciler)()
	return reconciler.SetupWithManager(ctx, mgr, bldr)
}
