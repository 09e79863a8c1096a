// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/empty"
	"trueup.dev/internal/nilcheck"
)

// choice is the decision about the objects that match a child.
type choice[CT client.Object] struct {
	// child is the object to manage. It is blank if a new child must be created.
	child CT
	// extra objects are deleted.
	extra []CT
	// unidentified objects are left unchanged.
	unidentified []CT
}

// choose decides which of the objects in present is the desired child. A child is identified by its name. If the user
// identifies children, with OurChild or by the id in a set, every object in present is a child, and at most one is
// kept. Otherwise an object with another name may belong to another part of the controller, so it is left unchanged.
//
// If none of several objects has the desired name, all are deleted: they are duplicates of a child whose name has
// changed.
func (c *children[T, CT]) choose(present []CT, desired CT, deleting bool) choice[CT] {
	// The common case: one object, and it is the child.
	if len(present) == 1 &&
		(nilcheck.IsNilPointer(desired) || c.identifiesChildren() || isNamedLike(present[0], desired)) {
		return choice[CT]{child: present[0]}
	}
	blank := empty.Like(c.childType)
	if nilcheck.IsNilPointer(desired) {
		// The name of the child is unknown.
		if deleting || c.identifiesChildren() {
			return choice[CT]{child: blank, extra: present}
		}
		return choice[CT]{child: blank, unidentified: present}
	}
	matching, others := partition(present, func(obj CT) bool { return !c.byID && isNamedLike(obj, desired) })
	switch {
	case len(matching) == 1 && c.identifiesChildren():
		return choice[CT]{child: matching[0], extra: others}
	case len(matching) == 1:
		return choice[CT]{child: matching[0], unidentified: others}
	case len(matching) > 1 && !c.identifiesChildren():
		return choice[CT]{child: blank, extra: matching, unidentified: others}
	case len(present) == 1:
		return choice[CT]{child: blank, unidentified: present}
	default:
		return choice[CT]{child: blank, extra: present}
	}
}

// identifiesChildren reports whether the user identifies children among the objects of their kind.
func (c *children[T, CT]) identifiesChildren() bool {
	return c.byID || c.ourChild != nil
}

// isNamedLike reports whether obj has the desired name. If the API server generates the name, it reports whether obj
// has the desired prefix.
func isNamedLike(obj, desired client.Object) bool {
	if desired.GetName() != "" {
		return sameName(obj, desired)
	}
	return strings.HasPrefix(obj.GetName(), desired.GetGenerateName())
}

// unidentifiedTTL is how long a warning about unidentified objects is not repeated for a parent.
const unidentifiedTTL = 6 * time.Hour

// warnUnidentified warns about objects that are left unchanged because they cannot be distinguished from the child. It
// warns once for each parent and set of objects.
func (c *children[T, CT]) warnUnidentified(ctx context.Context, parent T, unidentified []CT) {
	// An object of the inventory is pruned.
	unidentified = slices.DeleteFunc(slices.Clone(unidentified), func(obj CT) bool { return inventoryFrom(ctx).has(obj) })
	if len(unidentified) == 0 {
		return
	}
	names := make([]string, len(unidentified))
	for i, obj := range unidentified {
		names[i] = obj.GetName()
	}
	slices.Sort(names)
	listed := strings.Join(names, ", ")
	c.warnOnce.Do(func() { c.warned = cache.NewExpiring() })
	key := client.ObjectKeyFromObject(parent).String() + " " + string(parent.GetUID())
	if warned, ok := c.warned.Get(key); ok && warned == listed {
		return
	}
	c.warned.Set(key, listed, unidentifiedTTL)

	logr.FromContextOrDiscard(ctx).Info(
		"leaving objects alone that are not identified as a child, define OurChild", "objects", names,
	)
	RetrieveOriginalConfigOrDie(ctx).recorder().Eventf(parent, corev1.EventTypeWarning, "UnidentifiedChildren",
		"Left %s %s alone: not identified as a child, define OurChild in %s", typeName(c.childType), listed, c.reconciler)
}
