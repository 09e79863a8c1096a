// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/step"
)

// writer holds the values that are needed to write one object for one reconciled resource.
type writer struct {
	ctx      context.Context
	log      logr.Logger
	resource client.Object
	config   Config
	original Config
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
	switch err := w.config.Delete(w.ctx, actual, append(preconditions(actual), opts...)...); {
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
	}
}

func preconditions(obj client.Object) []client.DeleteOption {
	if uid := obj.GetUID(); uid != "" {
		return []client.DeleteOption{client.Preconditions{UID: &uid}}
	}
	return nil
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
