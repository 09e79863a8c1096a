// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"reflect"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
)

// sharesWith reports whether children can be listed without copying them. The code here does not change them, but a
// custom object manager may.
func (c *children[T, CT]) sharesWith(config Config) bool {
	if _, ours := c.manager.(sharingManager[CT]); !ours || config.cache == nil {
		return false
	}
	items, err := meta.GetItemsPtr(c.childListType)
	return err == nil && reflect.TypeOf(items).Elem().Elem().Kind() == reflect.Struct
}

// private returns a child that the caller may change.
func (c *children[T, CT]) private(child CT) CT {
	if c.shared.Empty() {
		return child
	}
	return child.DeepCopyObject().(CT)
}

// found are objects that can be children of a parent.
type found[CT client.Object] struct {
	// known are the objects that the user does not rule out.
	known []CT
	// strays are the others that the parent controls. One of them is the child if it has the desired name: another
	// client has changed the labels by which the user identifies it.
	strays []CT
}

// list returns the objects in the cache that can be children of the parent.
func (c *children[T, CT]) list(ctx context.Context, parent T) (found[CT], error) {
	inventoryFrom(ctx).ran(c.heldFinalizer())
	config := RetrieveConfigOrDie(ctx)
	if !c.isSetUp && inController(ctx) {
		if gvk, err := config.GroupVersionKindFor(c.childType); err == nil {
			scopeFrom(ctx).watched.warnChildNotSetUp(ctx, c.reconciler, gvk.GroupKind())
		}
	}
	opts := c.optionsFor(ctx, parent)
	if !c.shared.Empty() {
		opts = append(slices.Clip(opts), client.UnsafeDisableDeepCopy)
	}

	var indexErr error
	// The API server does not have this index.
	if c.indexed != (ownerIndex{}) && config.owners.has(c.indexed) && !journalFrom(ctx).Live() {
		if narrowed, ok := controlledBy(parent.GetUID(), opts); ok {
			list := empty.Like(c.childListType)
			if indexErr = config.List(ctx, list, narrowed); indexErr == nil {
				return c.filter(parent, list)
			}
		}
	}
	list := empty.Like(c.childListType)
	if err := config.List(ctx, list, opts...); err != nil {
		step.About(ctx, err, typeName(c.childType))
		return found[CT]{}, err
	}
	if indexErr != nil {
		// The list with the index failed: the client does not read this kind from the cache.
		logr.FromContextOrDiscard(ctx).Info(
			"unable to look children up by owner, all objects in the namespace are listed from now on",
			"childType", typeName(c.childType), "reason", indexErr.Error())
		config.owners.forget(c.indexed)
	}
	return c.filter(parent, list)
}

// addUncached adds the children that only the API server has to the children from the cache. It is used before
// decisions that cannot be undone. A child in the cache that no longer exists is harmless: deleting it again has no
// effect.
func (c *children[T, CT]) addUncached(ctx context.Context, parent T, cached found[CT]) (found[CT], error) {
	config := RetrieveConfigOrDie(ctx)
	if config.APIReader == nil {
		return cached, nil
	}
	// The API server supports only these field selectors. The filter removes additional objects from the list.
	options := (&client.ListOptions{}).ApplyOptions(c.optionsFor(ctx, parent))
	options.FieldSelector = servedFields(options.FieldSelector)
	list := empty.Like(c.childListType)
	if err := config.APIReader.List(ctx, list, options); err != nil {
		step.About(ctx, err, typeName(c.childType))
		return cached, err
	}
	live, err := c.filter(parent, list)
	if err != nil {
		return cached, err
	}
	for _, child := range live.known {
		if !slices.ContainsFunc(cached.known, func(other CT) bool { return sameObject(child, other) }) {
			journalFrom(ctx).NoteUnseen()
			stepRunFrom(ctx).noteUnseen()
			cached.known = append(cached.known, child)
		}
	}
	return cached, nil
}

func (c *children[T, CT]) optionsFor(ctx context.Context, parent T) []client.ListOption {
	if c.listOptions != nil {
		return c.listOptions(ctx, parent)
	}
	return []client.ListOption{client.InNamespace(parent.GetNamespace())}
}

func (c *children[T, CT]) filter(parent T, list client.ObjectList) (found[CT], error) {
	items, err := listItems[CT](list)
	if err != nil {
		return found[CT]{}, err
	}
	items = slices.DeleteFunc(items, func(child CT) bool { return !c.isOwned(parent, child) })
	if !c.shared.Empty() {
		for _, child := range items {
			nameKind(child, c.shared)
		}
	}
	if c.ourChild == nil || c.skipOwnerReference {
		return found[CT]{known: items}, nil
	}
	var all found[CT]
	all.known, all.strays = partition(items, func(child CT) bool { return c.ourChild(parent, child) })
	return all, nil
}

// isOwned reports whether an object can be a child: the parent controls it, or children have no owner reference and the
// user identifies it.
func (c *children[T, CT]) isOwned(parent T, child CT) bool {
	if c.skipOwnerReference {
		return c.accepts(parent, child)
	}
	return metav1.IsControlledBy(child, parent)
}

// accepts reports whether the user does not rule out that an object is the child.
func (c *children[T, CT]) accepts(parent T, child CT) bool {
	return c.ourChild == nil || c.ourChild(parent, child)
}

// servedFields returns the requirements of a field selector that every API server supports.
func servedFields(selector fields.Selector) fields.Selector {
	if selector == nil {
		return nil
	}
	served := []fields.Selector{}
	for _, r := range selector.Requirements() {
		if r.Field == "metadata.name" || r.Field == "metadata.namespace" {
			if r.Operator == selection.NotEquals {
				served = append(served, fields.OneTermNotEqualSelector(r.Field, r.Value))
			} else {
				served = append(served, fields.OneTermEqualSelector(r.Field, r.Value))
			}
		}
	}
	return fields.AndSelectors(served...)
}

// needsLiveList reports whether a stale list of children could clear a finalizer. A child that the cache does not have
// yet would then never be deleted, or after the children of a step that it depends on.
func (c *children[T, CT]) needsLiveList(ctx context.Context, parent T, known []CT) bool {
	if len(known) == 0 && stepRunFrom(ctx).confirms() {
		return true
	}
	if c.skipOwnerReference && parent.GetDeletionTimestamp() != nil {
		return true
	}
	holder, ok := c.manager.(FinalizerHolder)
	return ok && len(known) == 0 && holder.HeldFinalizer() != "" &&
		controllerutil.ContainsFinalizer(parent, holder.HeldFinalizer())
}
