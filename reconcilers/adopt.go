// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
)

// adopt returns an existing object of the desired name that becomes the child, or a blank one. The error is an
// AlreadyExists error if another controller owns the object.
func (c *children[T, CT]) adopt(ctx context.Context, parent T, desired CT) (CT, error) {
	blank := empty.Like(c.childType)
	if c.adopts == nil || desired.GetName() == "" {
		return blank, nil
	}
	config := RetrieveConfigOrDie(ctx)
	candidate := empty.Like(c.childType)
	switch err := config.Get(ctx, client.ObjectKeyFromObject(desired), candidate); {
	case apierrs.IsNotFound(err):
		return blank, nil
	case err != nil:
		step.About(ctx, err, identify(desired))
		return blank, err
	}
	switch controller := metav1.GetControllerOf(candidate); {
	case metav1.IsControlledBy(candidate, parent): // adopted before, and not recognized by OurChild yet
		return candidate, nil
	case candidate.GetDeletionTimestamp() != nil || !c.adopts(ctx, parent, candidate):
		return blank, nil
	case controller != nil:
		return blank, c.controlledByAnother(ctx, desired, controller)
	}
	if err := parentExists(ctx, parent); err != nil {
		return blank, err
	}
	w := newWriter(ctx, "Ownership", parent)
	w.log.Info("adopting child", "child", identify(candidate))
	before := candidate.DeepCopyObject().(CT)
	if err := controlBy(ctx, parent, candidate); err != nil {
		return blank, err
	}
	patching := guard.WithFieldOwner(ctx, adoptingOwner(ctx))
	if err := config.Patch(patching, candidate, lockedPatch(before)); err != nil {
		return blank, w.failed(err, "unable to adopt child", "AdoptionFailed", "adopt", candidate)
	}
	w.succeeded("Adopted", candidate)
	return candidate, nil
}

// release removes the owner reference to the parent from a child that is no longer desired, if the user wants that, or
// if the child was adopted and the user does not say what to do. It returns false if the child must be deleted.
func (c *children[T, CT]) release(ctx context.Context, parent T, child CT) (bool, error) {
	if releases, err := c.isReleased(ctx, parent, child); !releases || err != nil {
		return err != nil, err
	}
	w := newWriter(ctx, "Ownership", parent)
	w.log.Info("releasing child", "child", identify(child))
	released := child.DeepCopyObject().(CT)
	released.SetOwnerReferences(slices.DeleteFunc(
		slices.Clone(child.GetOwnerReferences()),
		func(ref metav1.OwnerReference) bool { return ref.UID == parent.GetUID() },
	))
	inventoryFrom(ctx).unlabel(released)
	switch err := w.config.Patch(ctx, released, lockedPatch(child)); {
	case apierrs.IsNotFound(err):
	case err != nil:
		return true, w.failed(err, "unable to release child", "ReleaseFailed", "release", child)
	default:
		w.succeeded("Released", child)
	}
	return true, nil
}

func (c *children[T, CT]) isReleased(ctx context.Context, parent T, child CT) (bool, error) {
	removing := MustRemove(ctx, parent)
	switch {
	case c.skipOwnerReference:
		return false, nil
	case removing && len(child.GetOwnerReferences()) < 2:
		// Without another owner, the child is garbage-collected with its parent in any case.
		return false, nil
	case !removing && c.releases != nil:
		return c.releases(ctx, parent, child), nil
	}
	o, err := c.origin(ctx, child)
	return o.adopted, err
}

// lockedPatch returns a merge patch that fails if the object has changed. It replaces all owner references.
func lockedPatch(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// controlledByAnother returns the error of the API server for an object that exists, with the reason.
func (c *children[T, CT]) controlledByAnother(
	ctx context.Context, desired CT, controller *metav1.OwnerReference,
) error {
	resource := schema.GroupResource{Resource: typeName(c.childType)}
	if gvk, err := RetrieveConfigOrDie(ctx).GroupVersionKindFor(c.childType); err == nil {
		resource.Group = gvk.Group
	}
	err := apierrs.NewAlreadyExists(resource, desired.GetName())
	err.ErrStatus.Message += fmt.Sprintf(" and is controlled by %s %q", controller.Kind, controller.Name)
	step.About(ctx, err, identify(desired))
	return err
}

// parentExists reads the parent from the API server. What a parent adopts that no longer exists is garbage-collected,
// and what is created for one that was deleted with its children left behind is left behind, too.
func parentExists(ctx context.Context, parent client.Object) error {
	config := RetrieveOriginalConfigOrDie(ctx)
	if config.APIReader == nil {
		return nil
	}
	gvk, err := ownerKind(ctx, parent)
	if err != nil {
		return err
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(gvk)
	if err := config.APIReader.Get(ctx, client.ObjectKeyFromObject(parent), live); err != nil {
		return fmt.Errorf("read the parent before it gets a child: %w", err)
	}
	if live.UID != parent.GetUID() || live.DeletionTimestamp != nil {
		return fmt.Errorf("%s was deleted: it gets no child", identify(parent))
	}
	return nil
}
