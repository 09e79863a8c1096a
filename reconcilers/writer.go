// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/step"
)

// writer holds the values that are needed to write one object for one reconciled resource.
type writer struct {
	ctx      context.Context
	log      logr.Logger
	resource client.Object
	config   Config
	original Config
	how      handling
}

// newWriter returns the writer of an object manager.
func newWriter(ctx context.Context, name string, resource client.Object) writer {
	return writer{
		ctx:      ctx,
		log:      logr.FromContextOrDiscard(ctx).WithName(name),
		resource: resource,
		config:   RetrieveConfigOrDie(ctx),
		original: RetrieveOriginalConfigOrDie(ctx),
	}
}

// delete deletes an object. It returns nil if the object no longer exists.
func (w writer) delete(actual client.Object, opts ...client.DeleteOption) error {
	w.log.Info("deleting unwanted resource", "resource", identify(actual))
	// The preconditions protect a newer object of the same name.
	opts = append(preconditions(actual, w.how.unchanged), opts...)
	switch err := w.config.Delete(w.ctx, actual, opts...); {
	case apierrs.IsConflict(err) && w.how.unchanged:
		return fmt.Errorf("%w: %w", ErrQuiet, err) // repeated with the object as it is now
	case apierrs.IsNotFound(err), apierrs.IsConflict(err) && actual.GetUID() != "":
		w.log.V(1).Info("unwanted resource no longer exists", "resource", identify(actual))
	case err != nil:
		return w.failed(err, "unable to delete unwanted resource", "DeleteFailed", "delete", actual)
	default:
		w.succeeded("Deleted", actual)
	}
	return nil
}

func (w writer) succeeded(reason string, obj client.Object) {
	w.original.recorder().Eventf(w.resource, corev1.EventTypeNormal, reason, reason+" %s %q", typeName(obj), obj.GetName())
}

func (w writer) failed(err error, message, reason, verb string, obj client.Object) error {
	if !isSilent(w.ctx, err) && !handledOutside(w.ctx, err) {
		w.log.Error(err, message, "resource", identify(obj))
		w.original.recorder().Eventf(w.resource, corev1.EventTypeWarning, reason,
			"Failed to "+verb+" %s %q: %v", typeName(obj), obj.GetName(), err)
		step.About(w.ctx, err, identify(obj))
		step.Recorded(w.ctx, err)
	}
	return err
}

func (w writer) track(obj client.Object) {
	if err := w.config.Tracker.TrackObject(obj, w.resource); err != nil {
		logUntracked(w.ctx, err, obj)
		return
	}
	w.config.holdFor(scopeFrom(w.ctx))
}

// preconditions returns the options to delete this object, and if unchanged is set, only in this version.
func preconditions(obj client.Object, unchanged bool) []client.DeleteOption {
	uid := obj.GetUID()
	if uid == "" {
		return nil
	}
	of := client.Preconditions{UID: &uid}
	if version := obj.GetResourceVersion(); unchanged && version != "" {
		of.ResourceVersion = &version
	}
	return []client.DeleteOption{of}
}

// owned returns the context of a request that creates or changes an object.
func (w writer) owned() context.Context {
	if !w.how.child {
		return w.ctx
	}
	return guard.WithFieldOwner(w.ctx, fieldOwner(w.ctx))
}

type handlesKey struct{}

// withHandler returns the context of an object manager whose caller handles some errors. They are neither logged nor
// recorded.
func withHandler(ctx context.Context, handles func(error) bool) context.Context {
	return context.WithValue(ctx, handlesKey{}, handles)
}

func handledOutside(ctx context.Context, err error) bool {
	handles, _ := ctx.Value(handlesKey{}).(func(error) bool)
	return handles != nil && handles(err)
}
